"""Translate advice of the library, which is in Python terms, into the flags of a command.

    PolysemeError  ->  cli.errors  ->  cli  ->  standard error

The library writes advice in backticks: an argument (`force=True`, `min_count`) or a call
(`polyseme.index(model, texts, out, layer=2)`). Arguments become flags only if the command has them, so that
advice for another function stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import typer

QUOTED = re.compile(r"`([^`]+)`")
ARGUMENT = re.compile(r"(?P<name>[a-z]\w*)(?:=(?P<value>.+))?")
CALL = re.compile(r"polyseme\.(?P<verb>[a-z]\w*)\((?P<arguments>.*)\)")
VERBS = {"map_usages": "map"}  # commands whose Python function has another name


@dataclass(frozen=True)
class Flag:
    """The flags of one option of a command.

    Attributes:
        on: The flag that takes a value, or sets a switch.
        off: The flag that clears a switch; None if there is none.

    """

    on: str
    off: str | None = None


Flags = Mapping[str, Flag]  # by the name of the Python argument


def translate_advice(message: str, flags: Mapping[str, Flags], command: str | None = None) -> str:
    """Rewrite the Python advice of an error message for a user of the command line.

    Args:
        message: An error message of the library.
        flags: The options of every command, by command and argument name; see `collect_flags`.
        command: The command that failed; None if it is not known.

    Returns:
        The message, with flags in place of arguments and commands in place of calls.

    """
    command_flags = flags.get(command or "", {})

    def replace(match: re.Match[str]) -> str:
        if call := CALL.fullmatch(match[1]):
            return _translate_call(call["verb"], call["arguments"], flags) or match[0]
        if argument := ARGUMENT.fullmatch(match[1]):
            return _translate_argument(argument["name"], argument["value"], command_flags) or match[0]
        return match[0]

    return QUOTED.sub(replace, message)


def collect_flags(app: typer.Typer) -> dict[str, dict[str, Flag]]:
    """The flags of every command of a program, by command and by Python argument name."""
    group = typer.main.get_command(app)
    commands = group.commands if isinstance(group, typer.core.TyperGroup) else {}
    return {
        name: {
            option.name: Flag(option.opts[-1], next(iter(option.secondary_opts), None))
            for option in command.params
            if option.name and option.param_type_name == "option"
        }
        for name, command in commands.items()
    }


def _translate_argument(name: str, value: str | None, flags: Flags) -> str | None:
    """`min_count=5` as `--min-count 5`; None if the command has no such option."""
    flag = flags.get(name)
    if flag is None:
        return None
    if value is None or value == "True":
        return flag.on
    if value == "False":
        return flag.off or f"without {flag.on}"
    return f"{flag.on} {_format_value(value)}"


def _translate_call(verb: str, arguments: str, flags: Mapping[str, Flags]) -> str | None:
    """`polyseme.index(model, texts, out, layer=2)` as `polyseme index MODEL TEXTS --out OUT --layer 2`."""
    command = VERBS.get(verb, verb)
    if command not in flags:
        return None
    words = ["polyseme", command]
    for argument in filter(None, arguments.split(", ")):
        name, is_keyword, value = argument.partition("=")
        flag = flags[command].get(name)
        if flag is None:
            words.append(_format_value(value if is_keyword else name))
        elif value == "True":
            words.append(flag.on)
        else:
            words += [flag.on, _format_value(value if is_keyword else name)]
    return " ".join(words)


def _format_value(value: str) -> str:
    """A value as a user types it: names in capitals, strings without quotes."""
    if value.isidentifier() and value not in ("True", "False", "None"):
        return value.upper()
    return value.strip("'\"")
