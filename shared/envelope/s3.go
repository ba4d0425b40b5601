package envelope

var (
	testNames   = []string{"Service", "Event", "Bucket"}
	objectNames = []string{"eventSource", "s3"}
)

// objectEvents opens an object that is an event notification of S3: its only member is Records, a list of one or more
// objects whose eventSource is aws:s3 and that have an object s3. Each of them is a document. The notification that S3
// sends to try its destination out holds none: its Service is "Amazon S3", its Event "s3:TestEvent", its Bucket a text
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html).
func (w *walk) objectEvents(object []byte) (bool, error) {
	var v [3][]byte
	if members(object, testNames, v[:]) && says(v[0], "Amazon S3") && says(v[1], "s3:TestEvent") && isText(v[2]) {
		w.skip()
		return true, nil
	}
	records := objectRecords(object)
	for _, record := range records {
		if err := w.emit(Document{JSON: record}); err != nil {
			return true, err
		}
	}
	return len(records) > 0, nil
}

// objectRecords returns the records of a notification; none where object is not one.
func objectRecords(object []byte) (records [][]byte) {
	s := scanner{src: object}
	s.open('{')
	if name := s.quoted(); string(name) != "Records" {
		return nil
	}
	s.expect(':')
	all := true
	s.array(func() {
		var v [2][]byte
		record := s.skip()
		all = all && len(record) > 0 && record[0] == '{' && members(record, objectNames, v[:]) &&
			says(v[0], "aws:s3") && len(v[1]) > 0 && v[1][0] == '{'
		records = append(records, record)
	})
	if !s.take('}') || s.err != nil || !all {
		return nil
	}
	return records
}
