// Package rules compiles a rule file and turns JSON documents into tally events by it. Its promise: what a document
// counts for depends on the document and the rules alone, so that a redelivery or a replay gives the same events; and
// a document that cannot be counted exactly is refused whole, with a reason, never rounded, guessed at or half
// counted.
//
// # The rule file
//
//	counters:
//	  - name: flights
//	    match: origin != nil && distance > 0
//	    id: flight_id
//	    time: {path: date, layout: "2006/01/02 15:04", zone: UTC}
//	    keys: ["all", "origin/{origin}", "route/{origin}/{destination}"]
//	    add: 1
//	    windows: {all: forever, 1d: 400d, 1h: 14d}
//
// The members of a counter:
//
//	name       letters, digits, '.', '_' and '-', at most 64; counts are stored under it
//	match      an expression that is true or false; absent: every record
//	id         path of the event's identity; absent: the source's own identity of the record
//	scope      a name that counters with the same identities may share; absent: the counter's own name
//	time       path of an RFC 3339 text, or {path, layout, zone}, or {path, unit}; absent: arrival time
//	max_ahead  how far ahead of now a time may lie; absent: 24h
//	keys       what to count by
//	add        a whole number, or a path, or {path, scale}; absent: 1
//	windows    name and retention of each; absent: {all: forever}
//
// Beside counters the file may have these members, which say how a record is opened before it is split into documents:
//
//	envelopes  a list of kpl, gzip, zstd, sns, eventbridge, s3, logs, or none; absent: all seven
//	base64     true: text in base64 is opened as well; absent: false
//
// A wrapping that is not listed is a document as it stands, or a bad record where it is not JSON. Package envelope tells
// how each is recognised.
//
// The file is YAML, one document, at most 256 KiB and 1,000 counters. Unknown members, repeated members and empty
// members are faults. Anchors and aliases may be used, merge keys (<<) may not.
//
// # Paths
//
// A path is the names of members from the top of the document down, joined by dots: order.price. Names match letter by
// letter, case included. A backslash takes the character after it literally: order\.price is one name. A path through
// null is absent; a path through anything else that is not an object makes the record bad.
//
// # Identity
//
// An id is text or a whole number; 7, 7.0 and "7" are the same. It is taken as it stands, without trimming. Absent,
// null, empty or blank, the record has no identity of its own and counts under the source's: stream, shard and
// sequence number, or queue and message id. Any other value makes the record bad.
//
// Each counter has its own claims: an order_id that one counter has seen hides nothing from another. Counters of one
// record that have no identity share one event, which is cheaper. Counters that always see the same events under the
// same identity can share one as well: give them the same scope, which is the name of one of them or any other. The
// trap: an event counts once in a scope. If counters of one scope match different records of the same identity, the
// record that comes first makes the others repeats, and their counters miss them. Where in doubt, leave scope out; it
// costs one write for each event, and no count.
//
// # Time
//
// A time is an RFC 3339 text (with capital T and Z, without leap seconds); or text in a layout of the Go language, in
// a zone, UTC if it is not named; or a number of unit s or ms since 1970. Fractions are allowed and cut. A number
// needs a unit, and must fit it: below 100,000,000,000 it is seconds (until the year 5138), from there on milliseconds
// (from 1973), so that neither is ever taken for the other. Where clocks are set back, a local time occurs twice; the
// same one of the two is taken each time.
//
// A configured time that is absent, malformed, before 0001-01-02, after 9999 or more than max_ahead ahead of now makes
// the record bad: it is never counted by its arrival instead. Arrival times are taken as the source gives them.
//
// # Keys
//
// A key is text with members in braces, {{ and }} for braces. Text goes in as it is, numbers in plain digits (1.0 and
// 1 give 1, 1.50 gives 1.5, 1e3 gives 1000), true and false as words. An absent, null, empty or composite member makes
// the record bad, and so does a key of more than 1,024 bytes. {tags[]} spreads a list out: one key for each element, 1
// to 1,000 of them. A key that occurs twice in one event counts once. Keys may hold any character, '|' and control
// characters included: counts are stored under counter|key, and a counter's name has no '|'. Who prints keys must
// quote them. Values are not escaped: {a}/{b} gives x/y/z for both x/y, z and x, y/z.
//
// # Add
//
// A member to add is a JSON number: whole, within 64 bits, exact. 1.0 and 1e3 are whole; -0 is 0. With scale, that
// many decimals count: 19.99 adds 1999 under scale: 2. More decimals than scale, a number beyond 64 bits, text, null
// or an absent member make the record bad. No floating point is used. A delta of 0 is counted like any other.
//
// # Windows
//
// A window is all, one bucket without an end, or a duration: buckets of that length side by side in UTC, counted from
// 1970, weeks from Monday (tally.Window). Its name is its shortest spelling, 1h and not 60m, so that each has one. Its
// retention says how long a bucket is kept after its end: a duration, or forever. An event too old for it is left out
// of that window and counted in the others.
//
// # Match
//
// A match is an expression of github.com/expr-lang/expr over the top members of the document. Members whose names are
// no identifiers are read as $env["detail-type"]. Whole numbers within 64 bits are exact, other numbers are float64.
// An absent member is nil, as null is: origin != "" is true of a record without origin, (origin ?? "") != "" is not.
// The answer nil counts as false. An operator without meaning for its operands, such as nil > 0, makes the record bad;
// guard it: distance != nil && distance > 0. Not to be had, since answers must be the same at any time and runs
// bounded: the clock, zones, let, patterns out of the document, functions that build large values, and, within a
// function over a list such as any(tags, # == "x"), another one or one that takes anything but the element. A function
// whose name is also a member read in the expression is called with two colons before it: ::len(tags). The matches of
// one document read at most 4,096 JSON values together, and one with a function over a list at most 64 KiB.
//
// # Documents
//
// A document is one JSON object in UTF-8, nested at most 10,000 deep. A byte order mark before it and blanks around it
// are skipped. A member name twice in one object, an unpaired surrogate, or anything after the object makes it bad.
// Lists and lines of objects are split before rules see them.
package rules
