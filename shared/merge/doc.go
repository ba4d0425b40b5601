// Package merge makes events durable exactly once. MergeMany takes a batch of events and answers each: counted,
// counted before, in flight elsewhere, failed, or refused.
//
//	events ─ plan ─► chunks ─ claim ─► held ─ commit ─► one transaction: record + totals
//	                              └─ whatever is not counted ─ release ─► claims given back
//
// What is guaranteed: as long as an identity is remembered (Config.Horizon), the adds of its event are applied
// together, once or not at all, whatever crashes, times out, is retried, arrives late or is delivered again; and an
// outcome that is Done is durable. What is not: that a failed event was not applied. Its next delivery finds out.
//
// Nothing here knows which database keeps the rows. Store is the contract, package mergetest holds a strict one in
// memory and the conformance suite, and package dynamo is the real one. DESIGN.md says why the protocol is as it is.
package merge
