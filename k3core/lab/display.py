"""Numbers as people read them: the same text in the build, on the command line and in the browser."""

MINUS = "\N{MINUS SIGN}"
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")


def number(value, digits: int = 4) -> str:
    """An integer in groups of three, a float with `digits` significant digits and no exponent where readable."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    text = f"{value:,.{max(0, digits - max(whole, 1))}f}" if whole else f"{value:.{digits}g}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", MINUS)


def binary_bytes(count) -> str:
    """Bytes in powers of 1,024: `65536` is "64 KiB"."""
    return _scaled(count, 1024, BINARY)


def decimal_bytes(count) -> str:
    """Bytes in powers of 1,000: `89820` is "89.82 kB"."""
    return _scaled(count, 1000, DECIMAL)


def percent(share: float, digits: int = 4) -> str:
    """A share of one as a percentage: `0.1813` is "18.13 %"."""
    return f"{number(100.0 * share, digits)} %"


def quantity(value, unit: str) -> str:
    """`value` with its unit, scaled where the unit has prefixes: "B" in powers of 1,024, "kB" (a count of bytes)
    in powers of 1,000, "share" as a percentage, "$" before the number, anything else as it stands."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value
    if unit == "B":
        return binary_bytes(value)
    if unit == "kB":
        return decimal_bytes(value)
    if unit == "share":
        return percent(value)
    if unit == "$":
        return f"${number(value)}"
    return f"{number(value)} {unit}".rstrip()


def _scaled(count, step: int, units: tuple) -> str:
    power, value = 0, abs(count)
    # What would print as a full step of this unit, 1,023.6 KiB for instance, goes to the next one.
    while (value >= step or number(value) == number(step)) and power < len(units) - 1:
        value, power = value / step, power + 1
    sign = MINUS if count < 0 else ""
    return f"{sign}{number(int(value) if value == int(value) else value)} {units[power]}"
