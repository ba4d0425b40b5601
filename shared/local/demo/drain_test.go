package demo

import (
	"testing"

	"abacus/shared/local"
	"abacus/shared/local/mapping"
)

func TestDrain_PutsTheClockForwardOnlyWhenNothingElseIsLeft(t *testing.T) {
	idle := func() local.Status {
		return local.Status{
			Mappings: map[string]mapping.Stats{
				kinesisMapping: {Shards: map[string]mapping.ShardStats{"s": {}}}, sqsMapping: {Polled: 9, Invoked: 9},
			},
			Queues: []local.Depth{{Queue: "Queue", InFlight: 2}},
		}
	}
	if !waitsForVisibility(idle()) {
		t.Error("two hidden messages are all that is left, and they would be waited for")
	}
	mapped := func(name string, stats mapping.Stats) func(*local.Status) {
		return func(s *local.Status) { s.Mappings[name] = stats }
	}
	waiting := mapping.Stats{Shards: map[string]mapping.ShardStats{"s": {Outstanding: 1}}}
	for name, change := range map[string]func(*local.Status){
		"nothing hidden":          func(s *local.Status) { s.Queues[0].InFlight = 0 },
		"a message to be taken":   func(s *local.Status) { s.Queues[0].Visible = 1 },
		"a message in a poller":   mapped(sqsMapping, mapping.Stats{Polled: 10, Invoked: 9}),
		"messages being counted":  mapped(sqsMapping, mapping.Stats{Polled: 9, Invoked: 9, Running: 1}),
		"a shard being counted":   mapped(kinesisMapping, mapping.Stats{Running: 1}),
		"records to be delivered": mapped(kinesisMapping, waiting),
	} {
		s := idle()
		change(&s)
		if waitsForVisibility(s) {
			t.Errorf("%s, and the clock would be put forward", name)
		}
	}
}
