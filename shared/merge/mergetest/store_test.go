package mergetest

import "testing"

func TestStore_KeepsTheContract(t *testing.T) {
	Run(t, func(t *testing.T) Subject { return New(t).Subject() })
}
