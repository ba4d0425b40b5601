package merge

// Status says what became of one event.
type Status uint8

// Every event ends in exactly one of these. The zero value is the one that loses nothing.
const (
	// Failed: not counted as far as is known, or not known to be; the source must deliver it again.
	Failed Status = iota
	// Counted: its adds are durable, by this call.
	Counted
	// Duplicate: its adds were durable before, or by another event of this call with the same identity.
	Duplicate
	// InFlight: another attempt holds it and may still count it; the source must deliver it again.
	InFlight
	// Refused: it can never be counted as it stands; deliver it to where bad records are kept.
	Refused
)

// Outcome is the answer for one event.
type Outcome struct {
	Status Status
	Err    error // why, for Failed, InFlight and Refused
}

// Done reports whether the event's adds are durable, so that its source may forget it.
func (o Outcome) Done() bool { return o.Status == Counted || o.Status == Duplicate }
