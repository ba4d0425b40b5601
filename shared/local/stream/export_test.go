package stream

// NumberAt returns the number that the shard of number gave to its record at index, had it come in the same second.
func NumberAt(number string, index uint64) (string, error) {
	q, err := parseSequence(number)
	q.index = index
	return q.String(), err
}
