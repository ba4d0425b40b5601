package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Limits on one payload. A payload beyond them is a bad record: what it costs to open is bounded, whoever sent it.
const (
	MaxUnpacked  = 16 << 20 // bytes, summed over all layers of compression
	MaxLayers    = 4        // wrappings within each other
	MaxDocuments = 65_536
)

// ErrPayload reports a payload in which no documents can be found. It is the same on every delivery: a bad record.
var ErrPayload = errors.New("payload cannot be read")

// Opener finds the documents in payloads. What a payload is wrapped in is told from its content. An Opener may be
// used by many goroutines and keeps what is costly to set up; make it by NewOpener.
type Opener struct {
	maxUnpacked, maxDocuments int
	layers                    []layer
	gunzips                   sync.Pool // of *gunzip
	unzstd                    func() (*zstd.Decoder, error)
}

// layer is one kind of wrapping. The first whose is recognises a payload opens it and hands what was inside to inner,
// one payload or several, in order; inner's payload is not kept. No layer: the payload is JSON.
type layer struct {
	is   func(payload []byte) bool
	open func(payload []byte, left *allowance, inner func(payload []byte) error) error
}

// allowance is what one record's payload may still cost.
type allowance struct{ bytes, documents int }

// NewOpener returns an Opener with the limits of this package.
func NewOpener() *Opener { return newOpener(MaxUnpacked, MaxDocuments) }

func newOpener(maxUnpacked, maxDocuments int) *Opener {
	o := &Opener{maxUnpacked: maxUnpacked, maxDocuments: maxDocuments}
	o.unzstd = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(maxUnpacked)))
	})
	o.layers = []layer{
		{magic("\x1f\x8b"), o.openGzip},
		{magic("\x28\xb5\x2f\xfd"), o.openZstd},
	}
	return o
}

func magic(prefix string) func([]byte) bool {
	return func(payload []byte) bool {
		return len(payload) >= len(prefix) && string(payload[:len(prefix)]) == prefix
	}
}

// Documents calls each for every document in payload, in order. A document is the text of one JSON object; payload is
// one of them, an array of them, or several values of these two sorts behind each other with or without white space
// between them (so also one a line), with or without a byte order mark, under up to MaxLayers of gzip or zstd. An
// empty array holds no documents.
//
// The error of each ends the walk and is returned as it is. Any other error wraps ErrPayload: then nothing in payload
// is to be trusted, though each may have seen documents already. doc is not kept after each returns.
func (o *Opener) Documents(payload []byte, each func(doc []byte) error) error {
	if o.wrapping(payload) == nil { // as nearly always; this way costs no allocation
		return documents(payload, &allowance{documents: o.maxDocuments}, each)
	}
	return o.open(payload, 0, &allowance{o.maxUnpacked, o.maxDocuments}, each)
}

// wrapping returns the layer that payload is wrapped in, or nil.
func (o *Opener) wrapping(payload []byte) *layer {
	for i := range o.layers {
		if o.layers[i].is(payload) {
			return &o.layers[i]
		}
	}
	return nil
}

func (o *Opener) open(payload []byte, depth int, left *allowance, each func([]byte) error) error {
	wrapping := o.wrapping(payload)
	switch {
	case wrapping == nil:
		return documents(payload, left, each)
	case depth == MaxLayers:
		return fmt.Errorf("%w: more than %d wrappings within each other", ErrPayload, MaxLayers)
	}
	return wrapping.open(payload, left, func(inner []byte) error { return o.open(inner, depth+1, left, each) })
}

func documents(payload []byte, left *allowance, each func([]byte) error) error {
	var stopped error
	s := scanner{src: bytes.TrimPrefix(payload, []byte("\uFEFF"))}
	document := func() {
		if s.peek() != '{' {
			s.fail("has something else than an object at byte %d", s.at)
			return
		}
		doc := s.skip()
		if left.documents--; s.err != nil || left.documents < 0 {
			s.fail("holds too many documents")
		} else if stopped = each(doc); stopped != nil {
			s.fail("was left")
		}
	}
	if s.peek(); s.at == len(s.src) {
		s.fail("is empty")
	}
	for s.peek(); s.at < len(s.src); s.peek() {
		if s.src[s.at] == '[' {
			s.array(document)
		} else {
			document()
		}
	}
	switch {
	case stopped != nil:
		return stopped
	case s.err != nil:
		return fmt.Errorf("%w: it %w; send JSON objects, one or an array or one a line, at most %d a record",
			ErrPayload, s.err, MaxDocuments)
	}
	return nil
}
