package dynamo

import (
	"testing"

	"abacus/shared/local/table"
	"abacus/shared/merge/mergetest"
)

// One suite over the real SDK and HTTP: with batches of claims, and with claims one by one.
func TestStore_KeepsTheContract(t *testing.T) {
	_, client := standIn(t, table.Config{})
	mergetest.Run(t, func(t *testing.T) mergetest.Subject { return subject(t, optionsFor(client)) })
}

func TestStore_KeepsTheContractWithSingleClaims(t *testing.T) {
	_, client := standIn(t, table.Config{})
	mergetest.Run(t, func(t *testing.T) mergetest.Subject {
		o := optionsFor(client)
		o.SingleClaims = true
		return subject(t, o)
	})
}
