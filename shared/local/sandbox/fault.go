package sandbox

import (
	"math/rand/v2"
	"time"
)

// Call is one invocation as a fault decision sees it.
type Call struct {
	N       int64 // 1 for the function's first
	Payload []byte
}

// Fault says what befalls one invocation. The zero value is a healthy one.
type Fault struct {
	Kill  bool          // SIGKILL the process After the event was handed out, unless it has answered by then
	After time.Duration // 0: at once
	// LoseAnswer lets the function finish and answer, then throws the answer away and kills the process: the caller sees
	// a crash after all of the work was done.
	LoseAnswer bool
}

// RandomCrashes returns a fault decision under which about share (0 to 1) of all invocations are killed at a moment
// drawn evenly from [0, within), and half as many again lose their answer. What befalls invocation N depends on seed
// and N alone.
func RandomCrashes(seed uint64, share float64, within time.Duration) func(Call) Fault {
	return func(c Call) Fault {
		rng := rand.New(rand.NewPCG(seed, uint64(c.N)))
		switch draw := rng.Float64(); {
		case draw < share:
			return Fault{Kill: true, After: time.Duration(rng.Float64() * float64(within))}
		case draw < share*1.5:
			return Fault{LoseAnswer: true}
		}
		return Fault{}
	}
}
