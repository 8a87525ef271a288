"""pyinfra reads this before the inventory: the report of a run begins and ends with the run."""

from gpufleet.node.settings import settings_problems
from gpufleet.run.reporting import begin_report

begin_report(__file__, settings_problems)
