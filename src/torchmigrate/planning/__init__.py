"""The upgrade plan: what every release of torch does to a project, and what there is to do about it."""
