package table

import (
	"crypto/sha256"
	"time"

	"abacus/shared/local/wire"
)

// tokenLife is how long a ClientRequestToken stands for its first request after that is done
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html).
const tokenLife = 10 * time.Minute

// tokens remembers the requests that came with a ClientRequestToken: running ones, and those that succeeded.
type tokens struct {
	known map[string]*tokenUse
	done  []string // tokens of known in the order in which they were done
}

type tokenUse struct {
	body    [sha256.Size]byte
	running bool
	done    time.Time
}

// begin notes that a request with this token starts; or it reports that one with the same body was done before, or
// refuses a request that is not the same, byte for byte, or whose first try is still running.
func (t *tokens) begin(token string, body []byte, now time.Time) (repeat bool, err error) {
	if token == "" {
		return false, nil
	}
	t.forget(now)
	hash := sha256.Sum256(body)
	use, known := t.known[token]
	switch {
	case known && use.body != hash:
		return false, wire.Errorf("IdempotentParameterMismatchException",
			"The provided idempotent token was used with other parameters: a repeat must be the same request, byte for byte")
	case known && use.running:
		return false, wire.Errorf("TransactionInProgressException",
			"The transaction with the given request token is already in progress.")
	case known:
		return true, nil
	}
	if t.known == nil {
		t.known = make(map[string]*tokenUse)
	}
	t.known[token] = &tokenUse{body: hash, running: true}
	return false, nil
}

// end notes that the request is over. A failed one leaves no trace: its repeat is a new request.
func (t *tokens) end(token string, succeeded bool, now time.Time) {
	use := t.known[token]
	switch {
	case use == nil:
	case succeeded:
		use.running, use.done = false, now
		t.done = append(t.done, token)
	default:
		delete(t.known, token)
	}
}

func (t *tokens) forget(now time.Time) {
	for len(t.done) > 0 && now.Sub(t.known[t.done[0]].done) >= tokenLife {
		delete(t.known, t.done[0])
		t.done = t.done[1:]
	}
}
