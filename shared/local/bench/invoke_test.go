package bench

import (
	"testing"
)

// BenchmarkInvocation is a whole invocation without a network, beside the reference; see measureInvoke.
func BenchmarkInvocation(b *testing.B) {
	event := kinesisEvent(views(1000, "i"))
	for _, w := range []struct{ name, rules string }{{"1 key", oneKey}, {"3 keys", threeKeys}} {
		b.Run(w.name+"/reference", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := naiveInvoke(event, w.rules, map[string]int64{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(w.name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			store := newMemory()
			handler, err := handlerOn(store, nil, w.rules)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				store.forget() // each invocation counts new events
				if _, err := handler.Invoke(b.Context(), event); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
