# One contract: the types of the compiled class are those of its twin.
from engine.reference import TimeWindow as TimeWindow
