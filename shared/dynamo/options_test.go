package dynamo

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"abacus/shared/local/table"
	"abacus/shared/merge"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestOptions_NameEveryFaultAtOnce(t *testing.T) {
	_, err := NewStore(Options{Counters: "ab", CallTimeout: -1, Parallel: -1})
	for _, want := range []string{
		"no client: pass one from NewClient", `counters table "ab": give a name of 3 to 255`, `dedup table ""`,
		"call timeout -1ns",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
	client := NewClient(configFor("http://127.0.0.1:1"))
	_, err = NewStore(Options{Client: client, Counters: "one", Dedup: "one"})
	if err == nil || !strings.Contains(err.Error(), "two tables") {
		t.Errorf("one table for both: %v", err)
	}
	if _, err := NewReader(Options{Client: client, Counters: "counters"}); err != nil {
		t.Errorf("a reader without a dedup table: %v", err)
	}
}

// Names go into statements between quotes, so what could end a quote must not pass.
func TestOptions_TableNames(t *testing.T) {
	client := NewClient(configFor("http://127.0.0.1:1"))
	for name, want := range map[string]bool{
		"abc": true, "ab": false, strings.Repeat("x", 255): true, strings.Repeat("x", 256): false, "a_b-c.D9": true,
		`abc"`: false, "a b c": false, "abc\n": false, "täble": false, "arn:aws:dynamodb:us-east-1:1:table/abc": false,
	} {
		if _, err := NewStore(Options{Client: client, Counters: "counters", Dedup: name}); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOptions_Defaults(t *testing.T) {
	s := storeOn(t, Options{Client: NewClient(configFor("http://127.0.0.1:1")), Counters: countersName, Dedup: dedupName})
	if s.timeout != 3*time.Second || s.parallel != 8 || s.now == nil || !s.Batches() {
		t.Errorf("%v, %d", s.timeout, s.parallel)
	}
}

func TestNewClient_KeepsConnectionsForTheNextCall(t *testing.T) {
	client := NewClient(configFor("http://127.0.0.1:1")).Options().HTTPClient.(*awshttp.BuildableClient)
	if got := client.GetTransport().MaxIdleConnsPerHost; got != idleConnections {
		t.Errorf("%d idle connections", got)
	}
	own := &http.Client{}
	cfg := configFor("http://127.0.0.1:1")
	cfg.HTTPClient = own
	if NewClient(cfg).Options().HTTPClient != own {
		t.Error("the caller's HTTP client was replaced")
	}
}

// Endpoints come from the SDK's own variables and nowhere else.
func TestNewClient_EndpointComesFromTheEnvironment(t *testing.T) {
	for _, variable := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Run(variable, func(t *testing.T) {
			s := &script{}
			t.Setenv(variable, serve(t, s))
			t.Setenv("AWS_ACCESS_KEY_ID", "key")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
			t.Setenv("AWS_REGION", "eu-central-1")
			cfg, err := config.LoadDefaultConfig(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := storeOn(t, optionsFor(NewClient(cfg))).FindRecord(t.Context(), "T"); err != nil || len(s.seen()) != 1 {
				t.Errorf("%v after %d requests", err, len(s.seen()))
			}
		})
	}
}

func TestOptions_NeedARegion(t *testing.T) {
	cfg := configFor("http://127.0.0.1:1")
	cfg.Region = ""
	o := optionsFor(NewClient(cfg))
	if _, err := NewStore(o); err == nil || !strings.Contains(err.Error(), "set AWS_REGION") {
		t.Errorf("%v", err)
	}
}

func TestMeter_HearsOfEveryRequestAndItsUnits(t *testing.T) {
	_, client := standIn(t, table.Config{})
	var mu sync.Mutex
	var heard []Usage
	o := optionsFor(client)
	o.Meter = func(u Usage) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, u)
	}
	store, reader := storeOn(t, o), readerOn(t, o)
	store.PutClaims(t.Context(), claimsNamed("T", "a", "b", "c"))
	store.PutClaims(t.Context(), claimsNamed("U", "a"))
	_, _ = store.Commit(t.Context(), someAttempt(2))
	_, _ = store.Abort(t.Context(), "U", time.Now().Add(time.Hour))
	_, _ = store.FindRecord(t.Context(), "U")
	_ = store.Release(t.Context(), "a", "U")
	_, _ = reader.Get(t.Context(), someAttempt(1).Adds[0].Cell)
	want := []struct {
		operation   string
		read, write float64
		failed      bool
	}{
		{"BatchExecuteStatement", 0, 3, false}, {"BatchExecuteStatement", 0, 1, false}, {"TransactWriteItems", 0, 6, false},
		{"PutItem", 0, 1, false}, {"GetItem", 1, 0, false}, {"DeleteItem", 0, 0, true}, {"Query", 1, 0, false},
	}
	var got []Usage
	for _, u := range heard {
		if u.Operation != "BatchGetItem" { // only where the endpoint does not return the row in the way
			got = append(got, u)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		u := got[i]
		units := u.Operation == operationBatch && i == 1 || u.Read == w.read && u.Write == w.write
		if u.Operation != w.operation || !units || (u.Err != nil) != w.failed {
			t.Errorf("request %d: %+v, want %+v", i, u, w)
		}
	}
}

func TestTableSpec_IsWhatTheTablesAreMadeOf(t *testing.T) {
	_, client := standIn(t, table.Config{})
	for name, want := range map[string]string{countersName: "pk HASH sk RANGE ttl", dedupName: "pk HASH ttl"} {
		out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			t.Fatal(err)
		}
		ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, key := range out.Table.KeySchema {
			parts = append(parts, *key.AttributeName, string(key.KeyType))
		}
		for _, a := range out.Table.AttributeDefinitions {
			if a.AttributeType != types.ScalarAttributeTypeS {
				t.Errorf("%s: key %s is of type %s", name, *a.AttributeName, a.AttributeType)
			}
		}
		parts = append(parts, *ttl.TimeToLiveDescription.AttributeName)
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestStore_ACallThatHangsLeavesTimeForTheNext(t *testing.T) {
	s := &script{replies: map[string][]reply{"GetItem": {{hang: true}, {body: `{"Item":` + abortedRow + `}`}}}}
	o := scripted(t, s)
	o.CallTimeout = 50 * time.Millisecond
	store := storeOn(t, o)
	_, err := store.FindRecord(t.Context(), "T")
	if kindOf(err) != "unknown" || !strings.Contains(err.Error(), "waited 50ms") {
		t.Errorf("%v", err)
	}
	store.timeout = time.Minute
	if record, err := store.FindRecord(t.Context(), "T"); err != nil || record.State != merge.Aborted {
		t.Errorf("%+v, %v", record, err)
	}
}
