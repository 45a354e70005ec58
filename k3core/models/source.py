"""Fields of a JSON object, read with error messages that name the field."""

MAX_LAYERS = 10_000


class Source:
    """A JSON object together with the name that its error messages use."""

    def __init__(self, data: dict, name: str, path: str = ""):
        self.data, self.name, self.path = data, name, path

    def error(self, key: str, problem: str) -> ValueError:
        shown = problem if len(problem) <= 300 else f"{problem[:200]} ... {problem[-80:]}"
        return ValueError(f"{self.name}: field '{self.path}{key}' {shown}")

    def has(self, *keys: str) -> bool:
        return any(self.data.get(key) is not None for key in keys)

    def value(self, *keys: str, default=None):
        """The first of these fields that is present and not null."""
        for key in keys:
            if self.data.get(key) is not None:
                return self.data[key]
        if default is None:
            raise self.error(keys[0], "is missing" + (f" (or {', '.join(keys[1:])})" if keys[1:] else ""))
        return default

    def count(self, *keys: str, default=None, least: int = 1, most: int = 2**31) -> int:
        """The first of these fields, as an integer from `least` to `most`."""
        value = self.value(*keys, default=default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            key = next((k for k in keys if self.data.get(k) is not None), keys[0])
            raise self.error(key, f"is {value!r}; it must be an integer from {least} to {most}")
        return value

    def layers(self) -> int:
        """num_hidden_layers."""
        return self.count("num_hidden_layers", most=MAX_LAYERS)

    def text(self, *keys: str, default: str | None = None) -> str:
        """The first of these fields, as a text."""
        value = self.value(*keys, default=default)
        if not isinstance(value, str):
            raise self.error(keys[0], f"is {value!r}; it must be a text")
        return value

    def list(self, key: str, kind: type) -> list:
        value = self.value(key)
        if not isinstance(value, list) or any(isinstance(v, bool) or not isinstance(v, kind) for v in value):
            raise self.error(key, f"must be a list of {'integers' if kind is int else 'texts'}")
        return value

    def inside(self, key: str) -> "Source":
        if not isinstance(self.data[key], dict):
            raise self.error(key, "must be an object")
        return Source(self.data[key], self.name, f"{self.path}{key}.")
