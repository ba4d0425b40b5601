package envelope

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	number1 = "49590338271490256608559692538361571095921575989136588898"
	stream  = "arn:aws:kinesis:eu-west-1:111122223333:stream/flights"
	queue   = "arn:aws:sqs:eu-west-1:111122223333:flights"
)

// kinesisJSON is an event of one record that carries {"a":1}; edits replace parts of its text.
func kinesisJSON(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`{"Records":[{"kinesis":{"partitionKey":"p","sequenceNumber":"` +
		number1 +
		`","data":"eyJhIjoxfQ==","approximateArrivalTimestamp":1545084650.987},"eventSource":"aws:kinesis",` +
		`"eventID":"shardId-000000000006:` + number1 + `","eventSourceARN":"` + stream + `"}]}`)
}

// sqsJSON is an event of one message that carries {"a":1}; edits replace parts of its text.
func sqsJSON(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`{"Records":[{"messageId":"m1","body":"{\"a\":1}","attributes":` +
		`{"ApproximateReceiveCount":"4","SentTimestamp":"1545082649183","MessageGroupId":"g"},"eventSource":"aws:sqs",` +
		`"eventSourceARN":"` + queue + `"}]}`)
}

func decodeOne(t *testing.T, kind Kind, raw string) Record {
	t.Helper()
	b, err := Decode(kind, []byte(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if len(b.Records) != 1 {
		t.Fatalf("%d records, want 1", len(b.Records))
	}
	return b.Records[0]
}

func TestC3_WhatIsNotAnEventOfTheSourceIsAnError(t *testing.T) {
	s3 := `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-west-1","s3":{}}]}`
	sns := `{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0","Sns":{"Message":"{}"}}]}`
	for _, kind := range []Kind{Kinesis, SQS} {
		wrong := []string{``, ` `, `null`, `[]`, `{}`, `5`, `"Records"`, `{"records":[]}`, `{"Records":null}`,
			`{"Records":{}}`,
			`{"Records":5}`, `{"Records":[null]}`, `{"Records":[{}]}`, `{"Records":[[]]}`, s3, sns, "{\"Records\":[]}x",
			`{"Records":[]}{"Records":[]}`, `{"Records":[]},`}
		if kind == SQS {
			wrong = append(wrong, `{"Records":[]}`, kinesisJSON(), `{"Records":[`+sqsRecord()+`,`+kinesisRecord()+`]}`)
		} else {
			wrong = append(wrong, sqsJSON(), `{"Records":[`+kinesisRecord()+`,`+sqsRecord()+`]}`)
		}
		for _, raw := range wrong {
			b, err := Decode(kind, []byte(raw))
			if !errors.Is(err, ErrEvent) {
				t.Errorf("%s: %s gave %d records and the error %v, want ErrEvent", kind, raw, len(b.Records), err)
			}
		}
	}
}

func kinesisRecord(edits ...string) string { return inner(kinesisJSON(edits...)) }
func sqsRecord(edits ...string) string     { return inner(sqsJSON(edits...)) }
func inner(event string) string {
	return strings.TrimSuffix(strings.TrimPrefix(event, `{"Records":[`), `]}`)
}

func TestC3_AnEmptyKinesisListIsAnEventWithoutRecords(t *testing.T) {
	b, err := Decode(Kinesis, []byte(`{"Records":[]}`))
	if err != nil || len(b.Records) != 0 {
		t.Fatalf("%d records, %v", len(b.Records), err)
	}
}

func TestC1_ARecordWithoutItsOwnNameIsAnErrorForTheBatch(t *testing.T) {
	for name, raw := range map[string]string{
		"no sequence number":       kinesisJSON(`"sequenceNumber"`, `"sequencenumber"`),
		"null sequence number":     kinesisJSON(`"`+number1+`"`, `null`),
		"empty sequence number":    kinesisJSON(number1, ``),
		"sequence number in words": kinesisJSON(number1, `latest`),
		"negative sequence number": kinesisJSON(number1, `-5`),
		"number, not a string":     kinesisJSON(`"sequenceNumber":"`+number1+`"`, `"sequenceNumber":`+number1),
		"no eventID":               kinesisJSON(`"eventID"`, `"eventid"`),
		"eventID without shard":    kinesisJSON(`shardId-000000000006:`, ``),
		"eventID with empty shard": kinesisJSON(`shardId-000000000006`, ``),
		"eventID of another":       kinesisJSON(`000006:4`, `000006:5`),
		"no ARN":                   kinesisJSON(`"eventSourceARN"`, `"eventSourceArn"`),
		"a separator in the shard": kinesisJSON(`shardId-`, `shardId|`),
		"a separator in the ARN":   kinesisJSON(`stream/`, `stream|`),
		"second record unnamed":    `{"Records":[` + kinesisRecord() + `,` + kinesisRecord(number1, ``) + `]}`,
	} {
		if _, err := Decode(Kinesis, []byte(raw)); !errors.Is(err, ErrEvent) {
			t.Errorf("kinesis, %s: %v, want ErrEvent", name, err)
		}
	}
	for name, raw := range map[string]string{
		"no message id":         sqsJSON(`"messageId"`, `"MessageId"`),
		"empty message id":      sqsJSON(`"m1"`, `""`),
		"null message id":       sqsJSON(`"m1"`, `null`),
		"message id a number":   sqsJSON(`"m1"`, `1`),
		"no ARN":                sqsJSON(`"eventSourceARN"`, `"eventSourceArn"`),
		"a separator in the id": sqsJSON(`"m1"`, `"m|1"`),
		"a mark in the id":      sqsJSON(`"m1"`, `"m#1"`),
		"a control in the id":   sqsJSON(`"m1"`, `"m\u001f1"`),
		"no ASCII in the id":    sqsJSON(`"m1"`, `"mé"`),
		"no UTF-8 in the id":    sqsJSON(`"m1"`, "\"m\xff\""),
		"a blank in the ARN":    sqsJSON(`:flights"`, `: flights"`),
		"second record unnamed": `{"Records":[` + sqsRecord() + `,` + sqsRecord(`m1`, ``) + `]}`,
	} {
		if _, err := Decode(SQS, []byte(raw)); !errors.Is(err, ErrEvent) {
			t.Errorf("sqs, %s: %v, want ErrEvent", name, err)
		}
	}
}

func TestC3_RecordsOfTwoSourcesAreAnError(t *testing.T) {
	for name, pair := range map[string][2]string{
		"two streams": {kinesisRecord(), kinesisRecord(`stream/flights`, `stream/others`)},
		"two shards":  {kinesisRecord(), kinesisRecord(`000006`, `000007`)},
	} {
		if _, err := Decode(Kinesis, []byte(`{"Records":[`+pair[0]+`,`+pair[1]+`]}`)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v, want ErrEvent", name, err)
		}
	}
	pair := `{"Records":[` + sqsRecord() + `,` + sqsRecord(`:flights"`, `:others"`) + `]}`
	if _, err := Decode(SQS, []byte(pair)); !errors.Is(err, ErrEvent) {
		t.Errorf("two queues: %v, want ErrEvent", err)
	}
}

func TestD6_OnlyTheExactNameIsTheMember(t *testing.T) {
	r := decodeOne(t, SQS, sqsJSON(`"messageId"`, `"MessageID":"x","messageid":"y","BODY":"z","messageId"`))
	if r.ID != "m1" || string(r.Payload) != `{"a":1}` {
		t.Errorf("message %q says %q", r.ID, r.Payload)
	}
	r = decodeOne(t, Kinesis, kinesisJSON(`"data"`, `"Data":"AAAA","data"`, `"eventSource"`,
		`"EventSource":"aws:sqs","eventSource"`))
	if string(r.Payload) != `{"a":1}` {
		t.Errorf("payload %q", r.Payload)
	}
	for _, raw := range []string{
		sqsJSON(`"messageId"`, `"messageId":"m0","messageId"`), sqsJSON(`"body"`, `"b\u006fdy":"","body"`),
		sqsJSON(`{"Records"`, `{"Records":[],"Records"`),
	} {
		if _, err := Decode(SQS, []byte(raw)); !errors.Is(err, ErrEvent) {
			t.Errorf("one member twice: %v, want ErrEvent: %s", err, raw)
		}
	}
}

func TestD7_AnyArrivalTimeIsReadToTheMillisecondOrNotAtAll(t *testing.T) {
	ms := func(n int64) time.Time { return time.UnixMilli(n).UTC() }
	for text, want := range map[string]time.Time{
		`1545084650.987`: ms(1545084650987), `1545084650`: ms(1545084650000), `1646158315209`: ms(1646158315209),
		`1545084650.9874`: ms(1545084650987), `1545084650.9876`: ms(1545084650988), `1559320290.838`: ms(1559320290838),
		`1.545084650987E9`: ms(1545084650987), `"1545084650.987"`: ms(1545084650987), `0.001`: ms(1),
		`1646158315209.4`: ms(1646158315209), `99999999999`: ms(99999999999000), `100000000000`: ms(100000000000),
		`253402300799999`: ms(253402300799999), `253402300800000`: {},
		`null`: {}, `"soon"`: {}, `-5`: {}, `0`: {}, `1e400`: {}, `{"at":1}`: {}, `true`: {}, `""`: {}, `"NaN"`: {},
		`"."`:                            {},
		`123456789012345678901234567890`: {}, `[1545084650]`: {},
	} {
		if r := decodeOne(t, Kinesis, kinesisJSON(`1545084650.987`, text)); !r.Arrived.Equal(want) {
			t.Errorf("Kinesis arrival %s: %v, want %v", text, r.Arrived, want)
		}
		if r := decodeOne(t, SQS, sqsJSON(`"1545082649183"`, text)); !r.Arrived.Equal(want) {
			t.Errorf("SQS arrival %s: %v, want %v", text, r.Arrived, want)
		}
	}
	r := decodeOne(t, Kinesis, kinesisJSON(`"approximateArrivalTimestamp"`, `"approximatearrivaltimestamp"`))
	if !r.Arrived.IsZero() {
		t.Errorf("a missing arrival time became %v", r.Arrived)
	}
}

func TestH2_AMessageReceivedBeforeIsDecodedAsAnyOther(t *testing.T) {
	r := decodeOne(t, SQS, sqsJSON())
	if r.Receives != 4 || r.Group != "g" || r.ID != "m1" || r.Identity != queue+"|m1" {
		t.Errorf("%+v", r)
	}
	if r := decodeOne(t, SQS, sqsJSON(`"attributes"`, `"attr"`)); r.Receives != 0 || r.Group != "" {
		t.Errorf("without attributes: %+v", r)
	}
}

func TestDecode_OnlyKinesisHasWindows(t *testing.T) {
	b, err := Decode(SQS, []byte(sqsJSON(`}]}`, `}],"window":{},"state":{"a":1}}`)))
	if err != nil || b.State != nil {
		t.Errorf("state %s, %v", b.State, err)
	}
}

func TestDecode_OrderOfMembersAndWhiteSpaceAreFree(t *testing.T) {
	r := decodeOne(t, Kinesis,
		" {\r\n\t\"x\" : [ { } , -0.5e+3 , null ] , \"Records\" : [ { \"eventSourceARN\" : \""+stream+
			"\" , \"eventID\" : \"s:7\" , \"eventSource\" : \"aws:kinesis\" , \"kinesis\" : { \"data\" : \"eyJhIjoxfQ==\" ,"+
			" \"sequenceNumber\" : \"7\" } , \"y\" : \"\\u00e9\\\"\" } ] , \"z\" : false } \n")
	if r.ID != "7" || r.Identity != stream+"|s|7" || string(r.Payload) != `{"a":1}` {
		t.Errorf("%+v", r)
	}
}

func TestDecode_EscapesMeanTheirCharacters(t *testing.T) {
	r := decodeOne(t, SQS, sqsJSON(`{\"a\":1}`, `\u007b\"\/\\\b\f\n\r\t\u00e9\uD83D\uDE00é`))
	if want := "{\"/\\\b\f\n\r\té😀é"; string(r.Payload) != want {
		t.Errorf("body %q, want %q", r.Payload, want)
	}
	// Base64 has '/', which some encoders escape; so may any other character be.
	r = decodeOne(t, Kinesis, kinesisJSON(`eyJhIjoxfQ==`, `\u002f\/\/\/`, `"data"`, `"d\u0061ta"`))
	if string(r.Payload) != "\xff\xff\xff" {
		t.Errorf("payload %q", r.Payload)
	}
	for _, body := range []string{`\uD83D`, `\uDE00\uD83D`, `\uD83Dx`, `\uD83D\n`, `\x41`, `\u12`, `\u12g4`, "\n",
		"\x00", `\`} {
		if _, err := Decode(SQS, []byte(sqsJSON(`{\"a\":1}`, body))); !errors.Is(err, ErrEvent) {
			t.Errorf("body %q: %v, want ErrEvent", body, err)
		}
	}
}

func TestDecode_DataThatIsNotBase64IsAnError(t *testing.T) {
	for _, data := range []string{`"e"`, `"eyJ"`, `"eyJhIjoxfQ"`, `"eyJ=hIj="`, `"===="`, `"e-J_"`, `"eyJh\nIjox\n"`,
		`"eyJh\r\n\r\n"`, `5`, `[]`} {
		if _, err := Decode(Kinesis, []byte(kinesisJSON(`"eyJhIjoxfQ=="`, data))); !errors.Is(err, ErrEvent) {
			t.Errorf("data %s: %v, want ErrEvent", data, err)
		}
	}
	for _, none := range []string{`""`, `null`} {
		if r := decodeOne(t, Kinesis, kinesisJSON(`"eyJhIjoxfQ=="`, none)); len(r.Payload) != 0 {
			t.Errorf("data %s became %q", none, r.Payload)
		}
	}
}

func TestDecode_AnEventCutShortIsAnErrorAtEveryByte(t *testing.T) {
	for kind, raw := range map[Kind]string{Kinesis: kinesisJSON(`"p"`, `-1.5e3`), SQS: sqsJSON(`"g"`, `"\u00e9"`)} {
		for n := range raw {
			if _, err := Decode(kind, []byte(raw[:n])); !errors.Is(err, ErrEvent) {
				t.Fatalf("%s cut at byte %d: %v, want ErrEvent", kind, n, err)
			}
		}
	}
}

func TestDecode_NestingAtTheLimitAndOnePast(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if _, err := Decode(Kinesis, []byte(`{"x":`+nest(maxDepth-1)+`,"Records":[]}`)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := Decode(Kinesis, []byte(`{"x":`+nest(maxDepth)+`,"Records":[]}`)); !errors.Is(err, ErrEvent) {
		t.Errorf("one past the limit: %v, want ErrEvent", err)
	}
}

// Records of one event may each have a form of their own, though Lambda's never do.
func TestDecode_ARecordOfAnotherFormIsReadLikeTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{Kinesis, SQS}).Draw(t, "kind")
		forms := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []string { return form(t, kind) }), 1, 3).Draw(t, "forms")
		var records []string
		for i := range rapid.IntRange(1, 6).Draw(t, "records") {
			members := rapid.SampledFrom(forms).Draw(t, "form")
			records = append(records, strings.NewReplacer("%1", fmt.Sprint(i+1), "%4",
				fmt.Sprint(i*7+1000)).Replace("{"+strings.Join(members, ",")+"}"))
		}
		raw := []byte(`{"Records":[` + strings.Join(records, rapid.SampledFrom([]string{",", " ,\n "}).Draw(t, "comma")) +
			`]}`)
		want, err := decodeByTokens(kind, raw)
		if err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		got, err := Decode(kind, raw)
		compare(t, "a token reader", got, err, want.Records)
	})
}

// form draws the members of a record in some order, among them some that nobody reads.
func form(t *rapid.T, kind Kind) []string {
	value := rapid.SampledFrom([]string{`1`, `-2.5e3`, `null`, `"x"`, `"\u0041\\\""`, `{}`, `[]`,
		`[1,{"kinesis":{"data":5}}]`, `{"messageId":"y","a":[true]}`})
	extra := func() []string {
		var members []string
		for i := range rapid.IntRange(0, 3).Draw(t, "extra") {
			members = append(members, fmt.Sprintf(`"extra%d":%s`, i, value.Draw(t, "value")))
		}
		return members
	}
	members := append(extra(), `"eventSource":"`+string(kind)+`"`, `"eventSourceARN" : "arn"`)
	if kind == Kinesis {
		inner := append(extra(), `"sequenceNumber":"%1"`, `"data":"AAAA"`, `"approximateArrivalTimestamp":%4`)
		members = append(members, `"eventID":"s:%1"`, `"kinesis":{`+strings.Join(rapid.Permutation(inner).Draw(t, "inner"),
			", ")+`}`)
	} else {
		inner := append(extra(), `"MessageGroupId":"g%1"`, `"SentTimestamp":"%4"`)
		members = append(members, `"messageId":"m%1"`, `"body":"{\"n\":%1}"`,
			`"attributes":{`+strings.Join(rapid.Permutation(inner).Draw(t, "inner"), ",")+`}`)
	}
	return rapid.Permutation(members).Draw(t, "order")
}

func TestDecode_AppendToAPayloadReachesNoNeighbour(t *testing.T) {
	for kind, raw := range map[Kind][]byte{Kinesis: kinesisEvent(3, flight), SQS: sqsEvent(3, flight)} {
		b, err := Decode(kind, raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Records {
			_ = append(b.Records[i].Payload, "overwritten"...)
		}
		for i, r := range b.Records {
			if string(r.Payload) != string(flight(i)) {
				t.Errorf("%s: payload %d became %q", kind, i, r.Payload)
			}
		}
	}
}

func TestDecode_CostsNoAllocationPerRecord(t *testing.T) {
	for kind, event := range map[Kind]func(int, func(int) []byte) []byte{Kinesis: kinesisEvent, SQS: sqsEvent} {
		raw := event(1000, flight)
		if n := testing.AllocsPerRun(5, func() { _, _ = Decode(kind, raw) }); n > 40 {
			t.Errorf("%s: %v allocations for 1,000 records, want at most 40", kind, n)
		}
	}
}

// Every event document that aws-lambda-go tests itself with goes to both decoders.
func TestDecode_TakesAwsLambdaGosOwnEventsAndNoOthers(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "events", "testdata", "*.json"))
	if err != nil || len(files) < 80 {
		t.Fatalf("%d event documents, %v", len(files), err)
	}
	want := map[string]int{"aws:kinesis kinesis-event.json": 2, "aws:kinesis kinesis-time-window-event.json": 1,
		"aws:sqs sqs-event.json": 1}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []Kind{Kinesis, SQS} {
			name := fmt.Sprint(kind, " ", filepath.Base(file))
			b, err := Decode(kind, raw)
			switch n, ok := want[name]; {
			case ok && (err != nil || len(b.Records) != n):
				t.Errorf("%s: %d records, %v, want %d", name, len(b.Records), err, n)
			case !ok && !errors.Is(err, ErrEvent):
				t.Errorf("%s: %d records, %v, want ErrEvent", name, len(b.Records), err)
			}
		}
	}
}
