"""Made-up rows in the columns of the data sets that the environment files name. All ask for the sum of two numbers."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ROWS = 240

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One sum: `What is a plus b?`, and four options of which the first is right."""

    number: int
    a: int
    b: int

    @property
    def total(self) -> int:
        return self.a + self.b

    @property
    def question(self) -> str:
        return f"What is {self.a} plus {self.b}?"

    @property
    def options(self) -> list[str]:
        return [str(self.total + more) for more in range(4)]


def rows_of(data_set: str) -> list[Row]:
    """240 rows of the data set of this name. Raises ValueError when there is no stand-in for it."""
    name = data_set.lower()
    for part, row in COLUMNS.items():
        if part in name:
            tasks = (Task(number, number % 17 + 1, number * 7 % 23 + 1) for number in range(ROWS))
            return [{"id": str(task.number), "question": task.question} | row(task) for task in tasks]
    raise ValueError(f"there is no stand-in for the data set {data_set!r}")


def red_square() -> Any:
    from PIL import Image

    return Image.new("RGB", (8, 8), (200, 30, 30))


def gsm8k(task: Task) -> Row:
    return {"answer": f"{task.a}+{task.b}={task.total}\n#### {task.total}"}


def contest(task: Task) -> Row:
    """A problem of a mathematics contest, under all names that the columns of such data sets have."""
    return {
        "problem": task.question, "Problem": task.question, "solution": f"\\boxed{{{task.total}}}",
        "answer": str(task.total), "Answer": str(task.total), "final_answer": [str(task.total)],
        "subject": "algebra", "subfield": "Algebra", "level": 1, "difficulty": 1.0, "topic": "t", "problem_type": "x",
        "context": None, "unit": None, "error": None, "answer_type": "Numerical", "is_multiple_answer": False,
    }  # fmt: skip


def deep_math(task: Task) -> Row:
    return contest(task) | {"final_answer": str(task.total), "r1_solution_1": "x"}


def hendrycks(task: Task) -> Row:
    solution = f"\\boxed{{{task.total}}}"
    return {"problem": task.question, "solution": solution, "level": "Level 1", "type": "Algebra"}


def tool_call_chat(task: Task) -> Row:
    call = json.dumps({"name": "add", "arguments": {"a": task.a, "b": task.b}})
    turns = (
        ("system", "You have the tool add(a, b)."), ("human", task.question + " Answer in <tool_call> tags."),
        ("gpt", f"<tool_call>\n{call}\n</tool_call>"),
    )  # fmt: skip
    return {"conversations": [{"from": role, "value": said} for role, said in turns]}


def shared_chat(task: Task) -> Row:
    turns = (("system", "Answer."), ("human", task.question), ("gpt", str(task.total)))
    return {"conversations": [{"from": role, "value": said} for role, said in turns]}


def choices(task: Task) -> Row:
    return {
        "prompt": task.question, "options": task.options, "answer": 0, "answer_index": 0, "ground_truth": "A",
    }  # fmt: skip


def mmlu_pro(task: Task) -> Row:
    return {
        "question_id": task.number, "options": task.options, "answer": "A", "answer_index": 0, "category": "math",
        "cot_content": "x", "src": "x",
    }  # fmt: skip


def mmlu(task: Task) -> Row:
    return {"choices": task.options, "answer": 0, "subject": "math"}


def lettered(task: Task) -> Row:
    return {
        "question_stem": task.question, "choices": {"text": task.options, "label": list("ABCD")}, "answerKey": "A",
    }  # fmt: skip


def patch(task: Task) -> Row:
    text = f"<issue>\n{task.question}\n</issue>\n<code>\n[start of f.py]\nx = {task.a}\n[end of f.py]\n</code>"
    return {
        "instance_id": f"i{task.number}", "repo": "r", "base_commit": "c", "problem_statement": task.question,
        "text": text, "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": text}],
        "patch": f"--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-x = {task.a}\n+x = {task.b}\n",
    }  # fmt: skip


def reversal(task: Task) -> Row:
    return {"text": task.question, "reversed_text": task.question[::-1]}


def picture(task: Task) -> Row:
    return {"image": red_square(), "problem": task.question, "solution": f"<answer>{task.total}</answer>"}


def clock(task: Task) -> Row:
    return {"image": red_square(), "hour": task.a % 12, "minute": task.b, "second": 0}


def questions_of_picture(task: Task) -> Row:
    return {"image": red_square(), "questions": [task.question], "answers": [str(task.total)]}


def instruction(task: Task) -> Row:
    return {
        "key": task.number, "prompt": task.question + " Do not use any commas.",
        "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}],
    }  # fmt: skip


def gpqa(task: Task) -> Row:
    wrong = {f"Incorrect Answer {number}": task.options[number] for number in (1, 2, 3)}
    subject = {"Subdomain": "math", "High-level domain": "math"}
    return {"Question": task.question, "Correct Answer": task.options[0], **wrong, **subject}


def musr(task: Task) -> Row:
    return {
        "narrative": "Two numbers.", "choices": str(task.options), "answer_index": 0, "answer_choice": task.options[0],
    }  # fmt: skip


def drop(task: Task) -> Row:
    total = str(task.total)
    date = {"day": "", "month": "", "year": ""}
    return {
        "passage": f"{task.a} and {task.b}.", "answers_spans": {"spans": [total], "types": ["number"]},
        "answer": {"number": total, "date": date, "spans": []}, "validated_answers": [],
    }  # fmt: skip


def simple_qa(task: Task) -> Row:
    about = "{'topic': 't', 'answer_type': 'n', 'urls': []}"
    return {"problem": task.question, "answer": str(task.total), "metadata": about}


def detection_rule(task: Task) -> Row:
    rule = f"title: t{task.total}\ndetection:\n  selection:\n    a: {task.total}\n  condition: selection\n"
    return {"prompt": task.question, "rule": rule}


def theorem(task: Task) -> Row:
    return {
        "name": f"t{task.number}",
        "formal_statement": f"theorem t{task.number} : {task.a} + {task.b} = {task.total} := by",
        "problem_statement_natural_language": task.question, "informal_prefix": task.question, "goal": task.question,
        "nl_statement": task.question, "split": "test", "header": "import Mathlib",
    }  # fmt: skip


def chat(task: Task) -> Row:
    turns = [{"role": "user", "content": task.question}, {"role": "assistant", "content": str(task.total)}]
    return {"conversation": turns, "language": "English"}


def passage_question(task: Task) -> Row:
    return {"passage": f"{task.a} and {task.b}.", "answer": "Yes"}


def olympiad(task: Task) -> Row:
    return contest(task) | {"final_answer": str(task.total)}


def grid_task(_: Task) -> Row:
    pair = {"input": [[1]], "output": [[2]]}
    return {"fewshots": [pair], "question": [pair]}


def hard_exam(task: Task) -> Row:
    return {"answer": str(task.total), "image": "", "category": "math", "source": "x"}


def big_bench(task: Task) -> Row:
    return {"input": task.question, "choices": task.options, "target_idx": 0, "task_prefix": ""}


def social(task: Task) -> Row:
    first, second, third, _ = task.options
    return {"context": "c", "answerA": first, "answerB": second, "answerC": third, "label": "1"}


def agi_eval(task: Task) -> Row:
    options = [f"({letter}){option}" for letter, option in zip("AB", task.options, strict=False)]
    return {
        "query": task.question, "choices": options, "gold": [0], "passage": "", "options": task.options, "label": "A",
        "answer": "A",
    }  # fmt: skip


# Part of the data set's name to its columns; the first part that is in the name counts.
COLUMNS: dict[str, Callable[[Task], Row]] = {
    "gsm8k": gsm8k,
    "deepmath": deep_math,
    "acereason": contest,
    "xlam": tool_call_chat,
    "open-instruct-sharegpt": shared_chat,
    "academicmcqa": choices,
    "swe": patch,
    "reversal": reversal,
    "clevr": picture,
    "clock": clock,
    "ocr-vqa": questions_of_picture,
    "mmlu-pro": mmlu_pro,
    "mmlu_pro": mmlu_pro,
    "ifeval": instruction,
    "gpqa": gpqa,
    "openbookqa": lettered,
    "ai2_arc": lettered,
    "musr": musr,
    "drop": drop,
    "simpleqa": simple_qa,
    "sigma": detection_rule,
    "siqa": social,
    "social_i_qa": social,
    "piqa": lambda task: {"goal": task.question, "sol1": task.options[0], "sol2": task.options[1], "label": 0},
    "boolq": passage_question,
    "hellaswag": lambda task: {
        "ctx": task.question, "ctx_a": task.question, "ctx_b": "", "activity_label": "x", "endings": task.options,
        "label": "0", "ind": task.number,
    },
    "winogrande": lambda task: {"sentence": "x _ y", "option1": "a", "option2": "b", "answer": "1"},
    "mmlu": mmlu,
    "agieval": agi_eval,
    "pubmed": lambda task: {
        "pubid": task.number, "context": {"contexts": ["c"]}, "long_answer": "l", "final_decision": "yes",
    },
    "bbh": big_bench,
    "arc-agi": grid_task,
    "cais/hle": hard_exam,
    "phybench": lambda task: {
        "tag": "M", "content": task.question, "solution": str(task.total), "answer": f"${task.total}$",
    },
    "wildchat": chat,
    "hendrycks": hendrycks,
    "lean": theorem,
    "minif2f": theorem,
    "aime": contest,
    "aimo": contest,
    "amc": contest,
    "math-500": contest,
    "math500": contest,
    "minerva": contest,
    "olympiad": olympiad,
    "math": hendrycks,
}  # fmt: skip
