"""Builds the site: bootstrap, browser runtime, k3core wheel, pages. Never shipped to the browser."""
