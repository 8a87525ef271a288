"""Nodes of one cluster during a run: their cordon, and the way back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.gpus import gpu_of, gpus_of
from gpufleet.upgrade.marks import NEVER, Cordon, is_of
from gpufleet.upgrade.nodes import (
    GONE,
    LARGEST_MARK,
    MARK_REFUSED,
    OTHER_MACHINE,
    UNMARKED,
    cordoning,
    has_cordon,
    is_cordoned,
    is_marked,
    is_other,
    mark_of,
    mark_text,
    marking,
    odd,
    unmarking,
    why_not_begun,
    why_not_kept,
    why_not_ours,
)
from gpufleet.upgrade.operations.evictions import CONFLICT, Round
from gpufleet.upgrade.operations.node_checks import NO_GPU, CheckedNodes
from gpufleet.upgrade.operations.readable import readable
from gpufleet.upgrade.states import Event

MEANWHILE = "the node changed while it was being cordoned"
TRIES = 8  # of a cordon that is refused, with other marks: the record has each
RESTLESS = f"its GPUs, label or annotation changed during each of {TRIES} attempts"

Make = Callable[[Mapping[str, Any]], Any]  # the patch of a node


class CordonedNodes(CheckedNodes):
    """The nodes of hosts of a run, each cordoned with a mark, and given back. The record of the run
    has what a node had before: the cluster may lose its mark."""

    def __init__(self, *nodes: Any) -> None:
        super().__init__(*nodes)
        self._made: dict[str, str | None] = {}  # host -> what its cluster made of the mark
        # host -> whether the node was cordoned by this process, as far as its cluster said so
        self._wrote: dict[str, bool] = {}
        self.kept: set[str] = set()  # hosts whose nodes stay cordoned without the mark of the run

    def _cordoned(self, host: str) -> Round:
        """Mark a node, then cordon it: nothing would know later whose a cordon without the mark is.
        It is given up where others were faster, or the mark is refused."""
        name, begun = self.nodes[host], self.cordons.get(host, NEVER)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        since = begun.mark.get("since") or now  # one that was refused is tried as it was

        def written(make: Make) -> Mapping[str, Any] | None:
            def patch(found: Mapping[str, Any]) -> Any:
                why = self._written(host, self._why_not_begun(host, found))
                if why or self._waits_for_gpu(host, found):
                    return None
                return make(found)

            return self._patch(name, patch)

        def cordon(found: Mapping[str, Any]) -> Any:
            if not is_marked(found, self.run, since):
                return None
            patch = cordoning(found, self.run, since, gpus_of(found))
            text = mark_text(patch) if patch else None
            if text and text != self.cordons.get(host, NEVER).text:
                # the record has it first: it is taken back where its mark is not kept
                self.record(Event.CORDON_BEGAN, host, text)
            return patch

        marked = written(lambda found: marking(found, self.run, since))
        if marked is not None and not is_marked(marked, self.run, since):
            return self._refused(host, marked)
        if (cordoned := self._answered(host, written, cordon)) is not None:
            return self._shown(host, cordoned)
        node = self._node(name)
        if not why_not_ours(node, self.run):
            return self._shown(host, node)
        if given_up := self._written(host, self._why_not_begun(host, node)):
            return Round(given_up=given_up)
        if marked is not None and not is_marked(node, self.run, since):
            return self._refused(host, node)
        return Round(reasons=[NO_GPU if self._waits_for_gpu(host, node) else MEANWHILE])

    def _answered(
        self, host: str, written: Callable[[Make], Mapping[str, Any] | None], cordon: Make
    ) -> Mapping[str, Any] | None:
        """Write a cordon, and remember what its cluster says of it."""

        def tried(found: Mapping[str, Any]) -> Any:
            if patch := cordon(found):
                self._wrote[host] = False  # until it is known that it was written, or may be
            return patch

        try:
            node = written(tried)
        except ApiError as error:
            if not error.is_final and error.status != CONFLICT:
                self._wrote.pop(host, None)  # a proxy, or a webhook that did not answer in time
            raise
        except ClusterProblem:
            self._wrote.pop(host, None)
            raise
        if node is not None:
            self._wrote[host] = True
        return node

    def _cordon_of(self, host: str) -> Cordon:
        """The recorded cordon; NEVER if the API refused it: a later one is another user's."""
        cordon, wrote = super()._cordon_of(host), self._wrote.get(host)
        if wrote is False and not cordon.seen:
            return NEVER
        return replace(cordon, sure=True) if wrote else cordon

    def _shown(self, host: str, node: Mapping[str, Any]) -> Round:
        """Whether the cluster keeps the mark of a cordoned node as it was written."""
        cordon, text = self.cordons.get(host), mark_text(node)
        if cordon and cordon.seen:
            return Round()
        others = cordon.text != text if cordon else len(text or "") > LARGEST_MARK
        if why_not_ours(node, self.run) or others:
            return self._refused(host, node)
        self.record(Event.CORDONED, host, text or "")
        return Round()

    def _refused(self, host: str, node: Mapping[str, Any]) -> Round:
        """What the run has written is taken back: a mark alone at once, as later processes cannot
        know whose it was; a cordon when the host is returned."""
        self._made[host] = mark_text(node)
        if not is_cordoned(node):
            with suppress(ClusterProblem):  # else when the host is returned, too
                self._unmark(host)
        return Round(given_up=MARK_REFUSED)

    def _waits_for_gpu(self, host: str, node: Mapping[str, Any]) -> bool:
        """Whether a node is to offer GPUs again before it is cordoned: else it is not known what it
        has to offer after its change."""
        return host in self.offering and not self.goes_back and not gpu_of(gpus_of(node))

    def _why_not_begun(self, host: str, node: Mapping[str, Any]) -> str:
        """Why a node is not to be drained, or not any more; "" if it may be."""
        cordon = self.cordons.get(host, NEVER)
        if cordon.seen and (lost := self._why_not_ours(host, node)):
            return lost
        if cordon.tries >= TRIES and not is_of(mark_of(node), self.run):
            return odd(RESTLESS)
        machine = self.machines.get(host, "")
        lost = why_not_kept(node, self.run) if cordon != NEVER else ""
        return lost or why_not_begun(node, self.run, machine)

    @readable
    def give_back(self, host: str) -> str:
        """Give the node its earlier state. What is to be said of it: that it was deleted, or what
        may be left of the run where others removed its mark; "" if nothing."""
        self.kept.discard(host)
        try:
            return self._given_back(host)
        except ApiError as error:
            if not self._is_gone(host, error):
                raise
            return GONE

    def _given_back(self, host: str) -> str:
        """As `give_back`. Raises ApiError where the node is deleted."""
        name = self.nodes[host]
        before = self._node(name)
        self._written(host, self._why_not_ours(host, before))
        written = self._patch(name, lambda node: self._returning(host, node))
        self._unmark(host)
        cordon, there = self._cordon_of(host), mark_of(before)
        node = written or self._node(name)
        was_cordoned = (cordon.mark or there).get("unschedulable")
        is_back = was_cordoned or not is_cordoned(node)
        if is_of(there, self.run) and not cordon.theirs and is_back:
            return ""
        stays = cordon.theirs and is_cordoned(before)
        if is_other(before, self.machines.get(host, "")) and not stays:
            return OTHER_MACHINE
        left = self._left_on(host, before, node)
        is_pending = there.get("run") == self.run and not (cordon.seen or is_of(there, self.run))
        if not is_cordoned(node) or cordon == NEVER or (is_pending and not has_cordon(node)):
            return left  # a cordon is another user's
        self.kept.add(host)
        return left or UNMARKED

    def _unmark(self, host: str) -> None:
        """Remove what the cluster made of a mark, unless others have changed it since."""
        if (made := self._made.get(host)) is not None:
            name = self.nodes[host]
            self._patch(name, lambda node: unmarking(node) if mark_text(node) == made else None)
        self._made.pop(host, None)
