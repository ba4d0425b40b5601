package wal

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Sentinels of a Consumer. Their errors hold no payload, id or text of a cause; errors.As and errors.Is find the cause.
var (
	ErrRunning = errors.New("another Run, Drain or Next has the log: wait until it returns")

	ErrUnsupportedDeliveryGuarantee = errors.New("the guarantee is not available: " +
		"choose one that the log and the acknowledger support")
	ErrBatchTooLarge = errors.New("the next record is larger than MaxBytes: " +
		"raise it, or choose another rejection policy")
	ErrInvalidSendResult = errors.New("the sender's result does not fit what it was offered: " +
		"name a prefix by its last position, and reject only the record behind it")
	ErrPermanentRejection = errors.New("the downstream will never take the next record: " +
		"remove its cause, or choose another rejection policy")
	ErrConsumerStalled = errors.New("the next record is not getting through: look at the downstream")
	ErrPanic           = errors.New("a callback panicked: mend it, then start again")
	ErrSend            = errors.New("the sender failed: the same records are offered again")
	ErrDeadLetter      = errors.New("the dead-letter handler failed: the same record is handed to it again")
	ErrAcknowledge     = errors.New("the downstream accepted records but the truncation failed: " +
		"look at the acknowledger; they are offered again")
	ErrDisposed = errors.New("a rejected record was disposed of but the truncation failed: " +
		"look at the acknowledger; it is disposed of again")
	ErrLog = errors.New("the log failed: look at its disk, then start again")
)

// Fault is an error of a Consumer: a sentinel, whose text it shows, and a cause, which it does not.
type Fault struct {
	Kind     error
	Callback string // which one panicked; else empty
	Cause    error  // may be nil
}

// Error names the sentinel and, after a panic, the callback.
func (f *Fault) Error() string {
	if f.Callback != "" {
		return "consume: " + f.Callback + ": " + f.Kind.Error()
	}
	return "consume: " + f.Kind.Error()
}

// Unwrap returns the sentinel and the cause.
func (f *Fault) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Cause}
}

// Panic is the cause of an ErrPanic.
type Panic struct {
	Value any
	Stack []byte
}

// Error shows the value and where it was thrown. A Fault does not show this text.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Unwrap returns the value where it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// call runs a callback. The error it returns becomes the cause of a Fault of that kind, its panic that of an ErrPanic.
func call(callback string, kind error, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{Kind: ErrPanic, Callback: callback, Cause: &Panic{p, debug.Stack()}}
		}
	}()
	if cause := f(); cause != nil {
		return &Fault{Kind: kind, Cause: cause}
	}
	return nil
}

// kindOf returns the sentinel of a Fault, and nil for other errors. Only the outermost counts: a cause may be the fault
// of another Consumer.
func kindOf(err error) error {
	if f, ok := err.(*Fault); ok {
		return f.Kind
	}
	return nil
}
