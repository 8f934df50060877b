"""Every mistake a user can make, as one sentence that says what is wrong and what to do."""


class AnyGivenError(Exception):
    """A user's mistake: the CLI prints its one sentence and exits with code 2."""


class TableError(AnyGivenError, ValueError):
    """The table cannot be read or modelled as it is."""


class TextError(AnyGivenError, ValueError):
    """The text cannot be read or modelled as it is."""


class ImageError(AnyGivenError, ValueError):
    """The images cannot be read or modelled as they are."""


class SchemaError(AnyGivenError, ValueError):
    """A column, a domain or a value does not fit the schema."""


class QuestionError(AnyGivenError, ValueError):
    """The question cannot be parsed, or does not make sense."""


class ModelFolderError(AnyGivenError, OSError):
    """The folder is not a model, or not a whole one."""


class OutputError(AnyGivenError, OSError):
    """An answer could not be written; nothing half-written was left behind."""


class Stopped(BaseException):
    """A signal ended the command: not an error, and not to be taken for one."""

    def __init__(self, signal_number: int, sentence: str = "Stopped."):
        super().__init__(sentence)
        self.signal_number = signal_number


class MissingExtraError(AnyGivenError, ImportError):
    """A feature needs an optional dependency."""


class AnyGivenWarning(UserWarning):
    """Something was decided on the user's behalf."""


def require(module: str, extra: str):
    """Import an optional module, or say in one sentence which extra brings it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs {module.split('.')[0]}: install it with pip install 'anygiven[{extra}]'."
        ) from error
