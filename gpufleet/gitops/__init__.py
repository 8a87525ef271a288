"""Files for a repository from which Flux or Argo CD installs the GPU stack of a cluster."""
