package envelope

// What tells an event of EventBridge: the first four are texts, detail is an object
// (https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html).
var busNames = []string{"version", "id", "detail-type", "source", "detail"}

// busEvent opens an object that is an event of EventBridge: its detail counts.
func (w *walk) busEvent(object []byte) (bool, error) {
	var v [5][]byte
	if !members(object, busNames, v[:]) || !isText(v[0]) || !isText(v[1]) || !isText(v[2]) || !isText(v[3]) ||
		len(v[4]) == 0 || v[4][0] != '{' {
		return false, nil
	}
	return true, w.inner(v[4])
}
