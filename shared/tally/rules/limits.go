package rules

import "time"

// Limits of one event.
const (
	// MaxAdds is how many adds one event may have. They are applied in one DynamoDB transaction of at most 100 actions
	// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html), one of which is the
	// commit record.
	MaxAdds = 99
	// MaxKey is the longest key, in bytes. DynamoDB's partition key holds 2048, which the counter's name shares
	// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html).
	MaxKey = 1024
	// MaxList is how many elements a list may have that a key template spreads out.
	MaxList = 1000
	// MaxMatchValues is how many JSON values of one document its match expressions may read together.
	MaxMatchValues = 4096
	// MaxMatchBytes is how many bytes of JSON a match may read that has a function over a list, such as any.
	MaxMatchBytes = 64 << 10
)

// Limits of a rule file.
const (
	maxFile     = 256 << 10 // bytes
	maxCounters = 1000
	maxName     = 64  // bytes
	maxPath     = 256 // bytes
	maxDepth    = 16  // names in a path
	maxMatch    = 4096
	maxNodes    = 256    // of one expression's tree
	maxMemory   = 10_000 // of one expression's run, in the expression machine's unit: about one list element
	maxScale    = 18
)

// defaultAhead is how far a document's time may lie ahead of now where the counter does not say max_ahead.
const defaultAhead = 24 * time.Hour

// The instants that a document may name. Zero times of common libraries (0001-01-01) lie outside.
var (
	earliest = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
)
