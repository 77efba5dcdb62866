"""Hundreds of repositories: examined by the workers of a Dask cluster, kept as Parquet, shown as one page."""
