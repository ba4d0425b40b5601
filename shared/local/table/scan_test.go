package table_test

import (
	"fmt"
	"testing"

	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A parallel scan's segments have every item once between them, and its pages too.
func TestScan_SegmentsAndPagesHaveEachItemOnce(t *testing.T) {
	_, c := start(t, table.Config{})
	makeTable(t, c, "tab", true)
	want := 0
	for i := range 40 {
		for j := range i % 3 {
			put(t, c, "tab", attrs{"pk": str(fmt.Sprint(i)), "sk": str(fmt.Sprint(j))})
			want++
		}
	}
	for _, segments := range []int32{1, 3, 7} {
		seen := make(map[string]int)
		for segment := range segments {
			pages := dynamodb.NewScanPaginator(c, &dynamodb.ScanInput{TableName: tab,
				Segment: &segment, TotalSegments: &segments, Limit: aws.Int32(4)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range page.Items {
					seen[textIn(item, "pk")+"/"+textIn(item, "sk")]++
				}
			}
		}
		if len(seen) != want {
			t.Errorf("%d segments: %d items, want %d", segments, len(seen), want)
		}
		for key, n := range seen {
			if n != 1 {
				t.Errorf("%d segments: %s appears %d times", segments, key, n)
			}
		}
	}
}
