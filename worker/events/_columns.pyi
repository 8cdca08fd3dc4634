# One contract: the types of the compiled class are those of its twin.
from worker.events.batch import Gathering as Gathering
