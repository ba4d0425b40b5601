package rules

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// flatRoot reads members at the top, below one that may be a scalar, and whole.
func flatRoot() (*member, int) {
	root, slots := newMember(), 0
	for _, path := range [][]string{{"a"}, {"b"}, {"b", "c"}, {"d", "e"}, {""}} {
		if root.reach(path, slots) == slots {
			slots++
		}
	}
	return root, slots
}

var errNotFlat = errors.New("not one object")

// slowly reads a document as if flat did not exist.
func slowly(document string) ([]value, error) {
	root, slots := flatRoot()
	r := reader{values: make([]value, slots)}
	r.document = []byte(document)
	r.cursor.open(r.document)
	if kind := r.cursor.PeekKind(); kind != jsontext.KindBeginObject {
		return nil, errNotFlat
	}
	if err := r.object(root); err != nil {
		return nil, err
	}
	if _, err := r.cursor.ReadToken(); err != io.EOF {
		return nil, errNotFlat
	}
	return r.values, nil
}

func TestFlat_ReadsWhatADecoderReadsOrDeclines(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"` + strings.Repeat("x", i+1) + `":1,`)
		}
		return `{` + b.String() + `"a":2}`
	}
	for document, want := range map[string]bool{
		`{}`: true, ` { } ` + "\n": true, `{"a":"x","b":1}`: true, "\t{\"a\" :\r\n-0.5e+7 , \"b\": null}": true,
		`{"b":true}`: true, `{"d":false}`: true, `{"a":""}`: true, `{"":1}`: true, many(31): true, many(32): false,
		`{"a":"é"}`: false, `{"a":"\n"}`: false, `{"\u0061":1}`: false, `{"a":[]}`: false, `{"b":{"c":1}}`: false,
		`{"a":1,"a":1}`: false, `{"a":01}`: false, `{"a":1.}`: false, `{"a":.5}`: false, `{"a":1e}`: false, `{"a":-}`: false,
		`{"a":+1}`: false, `{"a":nul}`: false, `{"a":truefalse}`: false, `{"a":1,}`: false, `{,"a":1}`: false,
		`{"a" 1}`:   false,
		`{"a":1}{}`: false, `{"a":1}x`: false, `{"a":1`: false, `{"a":"x`: false, `{"a`: false, `{`: false, ``: false,
		`[1]`: false, "{\"a\":\"\x00\"}": false, "{\"a\":\"\xff\"}": false, "{}\x00": false,
		"{\x00}": false, "{\"a\":1\x00}": false,
		`{"a":1 "b":2}`: false, "{\"a\":\x001}": false, "{\"a\":1}\x00": false,
	} {
		if got := readsFlat(t, document); got != want {
			t.Errorf("%q: flat %t, want %t", document, got, want)
		}
	}
}

// readsFlat reports whether flat takes the document, and holds what it reads against the decoder's word.
func readsFlat(t *testing.T, document string) bool {
	t.Helper()
	root, slots := flatRoot()
	r := reader{values: make([]value, slots), document: []byte(document)}
	took := r.flat(root)
	want, err := slowly(document)
	switch {
	case took && err != nil:
		t.Errorf("%q: taken, but a decoder says %v", document, err)
	case took && !cmp.Equal(r.values, want, cmp.AllowUnexported(value{})):
		t.Errorf("%q: %v, want %v", document, r.values, want)
	case !took && !cmp.Equal(r.values, make([]value, slots), cmp.AllowUnexported(value{})):
		t.Errorf("%q: declined, and left %v", document, r.values)
	}
	return took
}

func FuzzFlat(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"x","b":1,"d":null}`, ` {"b" : -1.5E-3 }`, `{"a":1,"a":2}`, `{"b":{"c":1}}`,
		`{"a":"é"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) { readsFlat(t, document) })
}
