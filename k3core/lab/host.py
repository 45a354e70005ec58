"""One interpreter serving one page: JSON text in, JSON text out. The worker in the browser calls only `handle`."""

import json
from types import SimpleNamespace

from k3core.lab import edits
from k3core.lab.contract import Needs, Progress, Result, dumps
from k3core.lab.params import ParamError, parse_all, parse_frames, parse_seed
from k3core.lab.registry import experiment
from k3core.lab.text import LANGUAGES, say


class Host:
    """Runs experiments step by step and draws frames of the last result.

    Requests: {"do": "start", "slug", "params", "seed", "lang"} then {"do": "step"} until the reply's state is no
    longer "progress"; {"do": "drop"}; {"do": "frame", "slug", "params", "seed", "lang", "scene", "index", "narrow"};
    {"do": "result", "slug", "params", "seed", "files", "lang"} gives the result as the text to save.
    {"do": "file", "key", "text"} keeps a dropped file, and without a text lets go of it; "start", "frame" and "result"
    name it in "files": {input name: key}. {"do": "edit", "sources": {module: text}} comes first where a reader edited
    modules: results then name them as "edited", and replies to runs tell what they "printed". {"do": "pace", "slug",
    "params", "seed"} does the first part of a job whose time the page takes, {"do": "pace"} the next.

    "start" also takes "frames" ({"frame.SCENE": index}, which pictures to send along), "narrow", "preset", only to be
    refused where there is none of this name, and "pin" ({"params", "seed", "files"}): settings to compare with, which
    run first and whose metrics come back as "pinned".

    A reply has "state": "progress", "done", "frame", "result", "dropped", "kept", "paced", "needs" (with the "name" of
    a file of weights that this installation lacks: put it there and ask again), "param_error", "edit_error" (with
    "module" and "line") or "error"; the last three carry a "message" for the reader.
    """

    def __init__(self):
        self.actions = {"start": self._start, "step": self._step, "drop": self._drop, "frame": self._frame,
                        "file": self._file, "edit": self._edit, "result": self._text, "pace": self._pace}
        self.request = None
        self.frames = {}
        self.steps = None
        self.result = None
        self.result_files = {}
        self.pinned = None
        self.paced = None
        self.files = {}

    def handle(self, text: str) -> str:
        """The reply to one request, as JSON text. Never raises: what went wrong is a reply too."""
        lang = (self.request or {}).get("lang", "en")
        try:
            request = json.loads(text)
            if request.get("lang", lang) not in LANGUAGES:
                raise ValueError(f"lang is {request['lang']!r}; it takes {' or '.join(LANGUAGES)}")
            lang = request.get("lang", lang)
            return dumps(self.actions[request["do"]](request))
        except ParamError as error:
            return dumps({"state": "param_error", "param": error.name, "message": error.render(lang)})
        except Needs as error:
            return dumps({"state": "needs", "name": error.name})
        except Exception as error:  # a reader's edit or a defect: the page must show it and go on
            if edits.edited():
                return dumps({"state": "edit_error", "printed": edits.printed()} | edits.fault(error, lang))
            return dumps({"state": "error", "message": edits.words(error, lang)})

    def _start(self, request: dict) -> dict:
        chosen = experiment(request["slug"])
        if request.get("preset") is not None:
            chosen.preset(request["preset"])
        self.request, self.frames = request, parse_frames(chosen.draw, request.get("frames", {}))
        self.pinned, self.steps = None, self._steps(request)
        return self._step(request)

    def _steps(self, request: dict):
        chosen = experiment(request["slug"])
        if request.get("pin"):
            yield from self._pinned_steps(chosen, request["pin"], request["lang"])
        yield from chosen.steps(request["params"], request["seed"], self._texts(request))

    def _pinned_steps(self, chosen, pin: dict, lang: str):
        """Progress of the run to compare with. Its metrics, or why there are none, end up in `self.pinned`."""
        try:
            for step in chosen.steps(pin["params"], pin["seed"], self._texts(pin)):
                if isinstance(step, Progress):
                    yield step
            self.pinned = {"metrics": [metric.to_json(lang) for metric in step.metrics]}
        except ParamError as error:
            self.pinned = {"message": error.render(lang)}

    def _step(self, _request: dict) -> dict:
        step = next(self.steps)
        if isinstance(step, Progress):
            return {"state": "progress", "done": step.done, "total": step.total,
                    "note": say(step.note, self.request["lang"])}
        self.steps, self.result, self.result_files = None, step, self.request.get("files", {})
        return {"state": "done", "result": self._json(step, self.request["lang"]), "pictures": self._pictures(step),
                "pinned": self.pinned} | ({"printed": edits.printed()} if edits.edited() else {})

    def _json(self, result: Result, lang: str) -> dict:
        return result.to_json(lang) | ({"edited": edits.edited()} if edits.edited() else {})

    def _text(self, request: dict) -> dict:
        return {"state": "result", "text": dumps(self._json(self._result_for(request), request["lang"]))}

    def _pace(self, request: dict) -> dict:
        if "slug" in request:
            chosen = experiment(request["slug"])
            values = SimpleNamespace(**parse_all(chosen.params, request["params"]))
            self.paced = chosen.pace(values, parse_seed(request["seed"]))
        return {"state": "paced"} | next(self.paced)

    def _edit(self, request: dict) -> dict:
        edits.install(request["sources"])
        edits.listen()
        return {"state": "kept"}

    def _file(self, request: dict) -> dict:
        if request["text"] is None:
            self.files.pop(request["key"], None)
        else:
            self.files[request["key"]] = request["text"]
        return {"state": "kept"}

    def _texts(self, request: dict) -> dict:
        return {name: self.files[key] for name, key in request.get("files", {}).items()}

    def _drop(self, _request: dict) -> dict:
        self.steps = None
        return {"state": "dropped"}

    def _frame(self, request: dict) -> dict:
        result = self._result_for(request)
        picture = experiment(request["slug"]).picture(result, request["scene"], request["index"], request["lang"],
                                                        request["narrow"])
        return {"state": "frame", "scene": request["scene"], "index": request["index"],
                "picture": picture.to_json(request["lang"])}

    def _pictures(self, result: Result) -> dict:
        """The frame of each scene that the page is showing, or the last one where the scene became shorter."""
        pictures, chosen = {}, experiment(result.slug)
        lang, narrow = self.request["lang"], self.request.get("narrow", False)
        for scene in result.scenes:
            index = min(self.frames.get(scene.name, scene.poster), scene.frames - 1)
            picture = chosen.picture(result, scene.name, index, lang, narrow)
            pictures[scene.name] = {"index": index} | picture.to_json(lang)
        return pictures

    def _result_for(self, request: dict) -> Result:
        """The last result if it answers this request, else a fresh run."""
        chosen, last, files = experiment(request["slug"]), self.result, request.get("files", {})
        params, seed = parse_all(chosen.params, request["params"]), parse_seed(request["seed"])
        if last is None or (last.slug, last.params, last.seed, self.result_files) != (chosen.slug, params, seed, files):
            self.result, self.result_files = chosen.run(params, seed, self._texts(request)), files
        return self.result


_HOST = Host()


def handle(text: str) -> str:
    """`Host.handle` of the interpreter's one host."""
    return _HOST.handle(text)
