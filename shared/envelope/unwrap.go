package envelope

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"abacus/shared/tally"

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

// Document is one JSON object of a payload.
type Document struct {
	JSON  []byte // the object's text; not to be kept
	Index int    // its place among the documents of its record, from 0
	// Arrived is when the innermost service that says so took it: the time of a log event. Zero: the record's own.
	Arrived time.Time
	origin  string // identity that its wrapping gives it, within the record's source; empty: none
}

// Identity is the document's own identity, where record is that of its record and source the ARN of the record's stream
// or queue: "<source>|log:<log>|<id>" for an event of CloudWatch Logs, which may come in several records; else that of
// DocumentIdentity.
func (d *Document) Identity(source, record string) string {
	if d.origin == "" {
		return DocumentIdentity(record, d.Index)
	}
	return streamARN(source) + separator + d.origin
}

// Opener finds the documents in payloads. What a payload is wrapped in is told from its content. An Opener may be
// used by many goroutines and keeps what is costly to set up; make it by NewOpener.
type Opener struct {
	opens                     tally.Envelopes
	maxUnpacked, maxDocuments int
	layers                    []layer
	objects                   []objectLayer
	gunzips                   sync.Pool // of *gunzip
	walks                     sync.Pool // of *walk
	unzstd                    func() (*zstd.Decoder, error)
}

// layer is a wrapping of bytes. The first whose is recognises a payload opens it, and hands what was inside to
// walk.inner, one payload or several, in order. No layer: the payload is JSON.
type layer struct {
	name tally.Envelopes
	is   func(payload []byte) bool
	open func(w *walk, payload []byte) error
}

// objectLayer is a wrapping that is itself a JSON object. The first whose open says that an object is one opens it: it
// hands what was inside to walk.inner, walk.emit or walk.skip. No layer: the object is a document. open is only asked
// about objects that mark has found to have the one member by which they are told apart from most others.
type objectLayer struct {
	name tally.Envelopes
	open func(w *walk, object []byte) (is bool, err error)
}

// NewOpener returns an Opener of the given wrappings with the limits of this package. What is wrapped otherwise is
// taken as it is.
func NewOpener(opens tally.Envelopes) *Opener { return newOpener(opens, MaxUnpacked, MaxDocuments) }

func newOpener(opens tally.Envelopes, maxUnpacked, maxDocuments int) *Opener {
	o := &Opener{opens: opens, maxUnpacked: maxUnpacked, maxDocuments: maxDocuments}
	o.unzstd = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(maxUnpacked)))
	})
	for _, l := range []layer{
		{tally.Gzip, isGzip, (*walk).gzip},
		{tally.Zstd, isZstd, (*walk).zstd},
		{tally.KPL, isAggregate, (*walk).aggregate},
		{tally.Base64, isBase64, (*walk).base64},
	} {
		if opens&l.name != 0 {
			o.layers = append(o.layers, l)
		}
	}
	for _, l := range []objectLayer{
		{tally.SNS, (*walk).notification},
		{tally.EventBridge, (*walk).busEvent},
		{tally.S3, (*walk).objectEvents},
		{tally.Logs, (*walk).logEvents},
	} {
		if opens&l.name != 0 {
			o.objects = append(o.objects, l)
		}
	}
	o.walks.New = func() any { return new(walk) }
	return o
}

// Documents calls each for every document in payload, in order. What is within its wrappings, up to MaxLayers of them,
// is one JSON object, an array of objects, or several values of these two sorts behind each other with or without white
// space between them (so also one a line), with or without a byte order mark. An empty array holds no documents.
//
// skipped counts what a service sent by its own custom and that holds no event: lines of a log that are no JSON objects,
// control messages, test notifications.
//
// The error of each ends the walk and is returned as it is. Any other error wraps ErrPayload: then nothing in payload
// is to be trusted, though each may have seen documents already. Nothing of a Document's JSON is kept after each returns.
func (o *Opener) Documents(payload []byte, each func(Document) error) (skipped int, err error) {
	w := o.walks.Get().(*walk)
	*w = walk{Opener: o, each: each, bytes: o.maxUnpacked, documents: o.maxDocuments}
	err = w.payload(payload)
	if w.stopped != nil {
		err = w.stopped
	}
	skipped = w.skipped
	*w = walk{}
	o.walks.Put(w)
	return skipped, err
}

// walk is one payload on its way to its documents.
type walk struct {
	*Opener
	each             func(Document) error
	bytes, documents int // that may still come
	depth            int // wrappings around what is at hand
	index            int // of the next document
	skipped          int
	stopped          error // of each
}

// inner walks what was within a wrapping. It keeps nothing of payload.
func (w *walk) inner(payload []byte) error {
	if w.depth == MaxLayers {
		return fmt.Errorf("%w: more than %d wrappings within each other", ErrPayload, MaxLayers)
	}
	w.depth++
	err := w.payload(payload)
	w.depth--
	return err
}

func (w *walk) payload(payload []byte) error {
	if len(payload) == 0 || payload[0] != '{' { // as it nearly always is, and no layer begins so
		for i := range w.layers {
			if w.layers[i].is(payload) {
				return w.layers[i].open(w, payload)
			}
		}
	}
	return w.json(payload)
}

// emit hands over a document.
func (w *walk) emit(d Document) error {
	if w.documents--; w.documents < 0 {
		return fmt.Errorf("%w: it holds too many documents; send at most %d a record", ErrPayload, w.maxDocuments)
	}
	d.Index = w.index
	w.index++
	w.stopped = w.each(d)
	return w.stopped
}

// skip notes something that holds no event by its service's own custom.
func (w *walk) skip() { w.skipped++ }
