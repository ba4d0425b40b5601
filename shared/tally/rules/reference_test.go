package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"abacus/shared/tally"
)

// This file says again what rules mean, slowly and plainly, with nothing but the standard library: to compare with.

// plainRule is one counter as its author thinks of it.
type plainRule struct {
	name, match, id, scope string
	timePath, timeForm     string // form: "" (text), "s", "ms" or a layout
	keys                   []string
	addPath                string
	addConstant            int64
	scale                  int
	windows                []plainWindow
}

type plainWindow struct {
	name      string
	length    int64 // seconds; 0: all
	retention int64 // seconds; 0: forever
}

// yaml writes the rule as one element of counters.
func (r plainRule) yaml() string {
	var b strings.Builder
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	fmt.Fprintf(&b, "  - name: %s\n", r.name)
	for _, m := range [][2]string{{"match", r.match}, {"id", r.id}, {"scope", r.scope}} {
		if m[1] != "" {
			fmt.Fprintf(&b, "    %s: %s\n", m[0], quote(m[1]))
		}
	}
	switch {
	case r.timePath == "":
	case r.timeForm == "":
		fmt.Fprintf(&b, "    time: %s\n", quote(r.timePath))
	case r.timeForm == "s" || r.timeForm == "ms":
		fmt.Fprintf(&b, "    time: {path: %s, unit: %s}\n", quote(r.timePath), r.timeForm)
	default:
		fmt.Fprintf(&b, "    time: {path: %s, layout: %s}\n", quote(r.timePath), quote(r.timeForm))
	}
	switch {
	case r.addPath == "":
		fmt.Fprintf(&b, "    add: %d\n", r.addConstant)
	case r.scale == 0:
		fmt.Fprintf(&b, "    add: %s\n", quote(r.addPath))
	default:
		fmt.Fprintf(&b, "    add: {path: %s, scale: %d}\n", quote(r.addPath), r.scale)
	}
	b.WriteString("    keys:\n")
	for _, key := range r.keys {
		fmt.Fprintf(&b, "      - %s\n", quote(key))
	}
	b.WriteString("    windows:\n")
	for _, w := range r.windows {
		retention := "forever"
		if w.retention != 0 {
			retention = fmt.Sprintf("%ds", w.retention)
		}
		fmt.Fprintf(&b, "      %s: %s\n", w.name, retention)
	}
	return b.String()
}

func plainFile(rules []plainRule) string {
	text := "counters:\n"
	for _, r := range rules {
		text += r.yaml()
	}
	return text
}

var (
	errPlain      = errors.New("bad record")
	loneSurrogate = regexp.MustCompile(`\\u[dD][89a-fA-F][0-9a-fA-F]{2}`)
	placeholder   = regexp.MustCompile(`\{\{|\}\}|\{([^{}]*)\}`)
)

// plainEvents is Set.Events.
func plainEvents(rules []plainRule, doc Document, now time.Time) (events []tally.Event, expired int, err error) {
	defer func() {
		if r := recover(); r != nil {
			if r != errPlain {
				panic(r)
			}
			events, expired, err = nil, 0, errPlain
		}
	}()
	root := plainDocument(doc.JSON)
	for _, r := range rules {
		if !r.matches(root) {
			continue
		}
		id := r.identity(root, doc)
		moment := r.moment(root, doc, now)
		delta := r.delta(root)
		i := slices.IndexFunc(events, func(e tally.Event) bool { return e.ID == id })
		if i < 0 {
			i = len(events)
			events = append(events, tally.Event{ID: id, Serial: doc.Serial})
		}
		for _, key := range r.keysOf(root) {
			for _, w := range r.windows {
				add := tally.Add{Cell: tally.Cell{Counter: r.name, Key: key, Window: w.name}, Delta: delta}
				if w.length > 0 {
					origin := int64(0)
					if w.length%(7*86400) == 0 {
						origin = -3 * 86400
					}
					for add.Cell.Bucket = (moment.Unix()-origin)/w.length*w.length + origin; add.Cell.Bucket > moment.Unix(); {
						add.Cell.Bucket -= w.length
					}
					if w.retention > 0 {
						add.Expires = add.Cell.Bucket + w.length + w.retention
					}
				}
				if add.Expires != 0 && add.Expires <= now.Unix() {
					expired++
					continue
				}
				events[i].Adds = append(events[i].Adds, add)
			}
		}
		plainCheck(len(events[i].Adds) <= 99)
	}
	return slices.DeleteFunc(events, func(e tally.Event) bool { return len(e.Adds) == 0 }), expired, nil
}

func plainCheck(ok bool) {
	if !ok {
		panic(errPlain)
	}
}

func plainDocument(text []byte) map[string]any {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	plainCheck(utf8.Valid(text))
	// Pairs of surrogates are well formed if the decoder makes no U+FFFD of them.
	for _, quoted := range regexp.MustCompile(`"(\\.|[^"\\])*"`).FindAll(text, -1) {
		var s string
		if loneSurrogate.Match(quoted) && json.Unmarshal(quoted, &s) == nil {
			literal := bytes.Count(quoted, []byte("\ufffd")) + len(regexp.MustCompile(`\\u[fF]{3}[dD]`).FindAll(quoted, -1))
			plainCheck(strings.Count(s, "\ufffd") == literal)
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var root any
	plainCheck(decoder.Decode(&root) == nil)
	object, ok := root.(map[string]any)
	plainCheck(ok && len(bytes.TrimSpace(text[decoder.InputOffset():])) == 0 &&
		len(bytes.Trim(text[decoder.InputOffset():], " \t\r\n")) == 0)
	plainNames(json.NewDecoder(bytes.NewReader(text)))
	return object
}

// plainNames refuses a member name that comes twice.
func plainNames(d *json.Decoder) {
	token, _ := d.Token()
	delimiter, ok := token.(json.Delim)
	if !ok {
		return
	}
	names := map[string]bool{}
	for d.More() {
		if delimiter == '{' {
			name, _ := d.Token()
			plainCheck(!names[name.(string)])
			names[name.(string)] = true
		}
		plainNames(d)
	}
	_, _ = d.Token()
}

// plainGet follows a path. It returns nil for what is absent or null.
func plainGet(root map[string]any, path string) any {
	var at any = root
	for name := range strings.SplitSeq(path, ".") {
		object, ok := at.(map[string]any)
		plainCheck(ok || at == nil)
		at = object[name]
	}
	return at
}

func (r plainRule) matches(root map[string]any) bool {
	switch r.match {
	case "":
		return true
	case `a == "x"`:
		return root["a"] == "x"
	case `n > 1`:
		n, ok := root["n"].(json.Number)
		plainCheck(ok)
		f, err := n.Float64()
		plainCheck(err == nil)
		return plainNumber(n).Cmp(big.NewRat(1, 1)) > 0 && f > 1
	}
	panic("no such match in the reference: " + r.match)
}

func plainNumber(n json.Number) *big.Rat {
	rat, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic("not a number: " + string(n))
	}
	return rat
}

func plainText(v any) string {
	switch v := v.(type) {
	case string:
		plainCheck(v != "")
		return v
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		rat := plainNumber(v)
		text := rat.FloatString(len(v) + 1100)
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
		plainCheck(len(text) <= 1024)
		return text
	}
	panic(errPlain)
}

func (r plainRule) identity(root map[string]any, doc Document) string {
	own := doc.Source
	if r.id != "" {
		scope := r.scope
		if scope == "" {
			scope = r.name
		}
		switch id := plainGet(root, r.id).(type) {
		case nil:
		case string:
			if strings.TrimSpace(id) != "" {
				own = scope + "\x1f" + id
			}
		case json.Number:
			plainCheck(plainNumber(id).IsInt())
			own = scope + "\x1f" + plainText(id)
		default:
			plainCheck(false)
		}
	}
	return tally.BoundID(own)
}

func (r plainRule) moment(root map[string]any, doc Document, now time.Time) time.Time {
	if r.timePath == "" {
		return doc.Arrived
	}
	var moment time.Time
	v := plainGet(root, r.timePath)
	switch r.timeForm {
	case "s", "ms":
		n, ok := v.(json.Number)
		plainCheck(ok)
		rat := plainNumber(n)
		floor := new(big.Int).Div(rat.Num(), rat.Denom())
		plainCheck(floor.IsInt64())
		whole := floor.Int64()
		small := whole > -1e11 && whole < 1e11
		plainCheck(small == (r.timeForm == "s"))
		moment = time.UnixMilli(whole)
		if r.timeForm == "s" {
			moment = time.Unix(whole, 0)
		}
	default:
		text, ok := v.(string)
		plainCheck(ok)
		layout := r.timeForm
		if layout == "" {
			layout = time.RFC3339
			plainCheck(regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`).MatchString(text))
		}
		var err error
		moment, err = time.Parse(layout, text)
		plainCheck(err == nil)
	}
	plainCheck(!moment.Before(time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)) && moment.UTC().Year() <= 9999)
	plainCheck(moment.Sub(now) <= 24*time.Hour)
	return moment
}

func (r plainRule) delta(root map[string]any) int64 {
	if r.addPath == "" {
		return r.addConstant
	}
	n, ok := plainGet(root, r.addPath).(json.Number)
	plainCheck(ok)
	rat := plainNumber(n)
	for range r.scale {
		rat.Mul(rat, big.NewRat(10, 1))
	}
	plainCheck(rat.IsInt() && rat.Num().IsInt64())
	return rat.Num().Int64()
}

func (r plainRule) keysOf(root map[string]any) []string {
	var keys []string
	for _, text := range r.keys {
		elements := []any{nil}
		if _, after, found := strings.Cut(text, "{tags[]}"); found || after != "" {
			list, ok := plainGet(root, "tags").([]any)
			plainCheck(ok && len(list) > 0 && len(list) <= 1000)
			elements = list
		}
		for _, element := range elements {
			key := placeholder.ReplaceAllStringFunc(text, func(found string) string {
				switch found {
				case "{{", "}}":
					return found[:1]
				case "{tags[]}":
					return plainText(element)
				}
				return plainText(plainGet(root, strings.Trim(found, "{}")))
			})
			plainCheck(len(key) <= 1024)
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	plainCheck(len(keys) <= 99)
	return keys
}
