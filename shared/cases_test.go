package shared

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bug is a public bug report of another system that counts or delivers, and what holds Abacus to the right behaviour.
type bug struct {
	what    string
	tests   []string // "<folder> <test>", "<folder> <test>/<start of a subtest's name>"; each carries the case's number
	pending string   // the package that is still to be written, and what its test must show
}

// cases lists every report that Abacus is held to, by theme: A claims, B DynamoDB, C answers, D decoding, E dead
// letters, F the extension, G the log, H the template.
var cases = map[string]bug{
	"A2": {"the invocation dies between claim and commit; a lease in the wrong unit", []string{
		"shared/merge TestA2_EventOfADeadAttemptIsTakenOverOnceItsLeaseEnds",
		"shared/merge TestA2_LeaseAtItsEndAndOneBefore",
		"shared/merge TestA2_B1_18_NoTimeLeftWritesNoClaim",
		"shared/merge TestA2_WithoutADeadlineTheLeaseIsFinite",
	}, ""},
	"A4": {"a duplicate is acknowledged while the first copy may still fail", []string{
		"shared/merge TestA4_EventHeldByALiveAttemptIsInFlightAndNeverADuplicate",
		"shared/ingest TestA4_ADuplicateInOneBatchIsAcknowledgedOnlyWithTheFirst",
	}, ""},
	"A5": {"events without an id hide each other", []string{
		"shared/tally/rules TestA5_RecordsWithoutAnIdentityNeverHideEachOther",
		"shared/ingest TestA5_RecordsWithoutAnIdentityCountOnceEach",
	}, ""},
	"A7": {"TTL is not deletion, and its horizon is too short", []string{
		"shared/merge TestA7_HorizonRemembersAndThenForgets",
		"shared/merge TestA7_ClaimPastItsExpiryCountsAsAbsentButItsAttemptIsAbortedFirst",
		"shared/dynamo TestA7_TTLIsANumberOfSecondsOnEveryRow",
		"shared/deploy TestTemplate_KeepsItsRulesUnderEverySetting/A7 ",
	}, ""},
	"A8": {"the claim is not released since its context is cancelled", []string{
		"shared/merge TestP16_A8_CancelledWorkStillReleasesOnALiveContext",
		"shared/merge TestA8_ShortDeadlineLeavesTimeToRelease",
	}, ""},
	"B2": {"request tokens: other bytes, ten minutes, in progress", []string{
		"shared/dynamo TestB2_RepeatedTransactionsCountOnceWhateverBecomesOfTheirTokens",
		"shared/dynamo TestB2_AMismatchOrATransactionInProgressIsNeverASuccess",
		"shared/dynamo TestB2_ElevenMinutesLaterTheRecordStillRecognisesTheRepeat",
	}, ""},
	"B3": {"which reasons of a cancelled transaction to retry", []string{
		"shared/dynamo TestB3_EachReasonOfACancelledTransaction",
		"shared/merge TestB3_ThreeConflictsThenSuccess",
		"shared/merge TestB3_ThrottlingIsRetriedMoreOftenAndMoreSlowly",
		"shared/merge TestB3_PermanentErrorIsNotRetried",
	}, ""},
	"B4": {"one item twice, or more than 100, in a transaction", []string{
		"shared/tally/rules TestB4_ARepeatedKeyCountsOnce",
		"shared/tally/rules TestB4_AddsOfAnEventLimitAndOnePast",
		"shared/dynamo TestB4_LimitOfOneTransaction",
	}, ""},
	"B5": {"one retry quota for all goroutines of a client", []string{
		"shared/dynamo TestB5_ABurstOfThrottlesIsSurvived",
		"shared/merge TestB5_ThrottledBurstOfManyGoroutinesEndsExact",
	}, ""},
	"C1": {"an answer that is nearly right", []string{
		"shared/envelope TestC1_TheAnswerIsExact",
		"shared/envelope TestC1_NoAnswerNamesARecordByNothing",
		"shared/ingest TestC1_AnswersForNoneOneAndAllFailed",
	}, ""},
	"C2": {"all records failed, and an empty list is answered", []string{
		"shared/ingest TestC2_WithTheStoreDownEveryRecordIsNamed",
		"shared/ingest TestC2_APanicOutsideARecordIsAnErrorAndNoAnswer",
	}, ""},
	"C3": {"an event of another source is taken for an empty batch", []string{
		"shared/envelope TestC3_WhatIsNotAnEventOfTheSourceIsAnError",
		"shared/ingest TestC3_WhatIsNotAnEventOfTheSourceIsAnErrorAndCountsNothing",
	}, ""},
	"C4": {"one unreadable record blocks its neighbours", []string{
		"shared/ingest TestC4_OneUnreadableRecordLeavesItsNeighboursAlone",
		"shared/ingest TestC4_ACounterThatCannotTakeItsAddIsABadRecord",
		"shared/dynamo TestC4_CounterThatIsNotANumberIsRefusedByName",
		"shared/dynamo TestC4_MoveThatTheRowCannotTakeIsRefused",
	}, ""},
	"C7": {"a panic in a worker ends the process", []string{
		"shared/ingest TestC7_APanicIsTheFailureOfItsRecordAlone",
		"shared/ingest TestC7_APanicAfterTheClaimLosesAndDoublesNothing",
		"shared/merge TestC7_B1_5_PanicOfTheStoreFailsItsOwnEventsAndReleasesThem",
		"shared/merge TestC7_PositionGuard_PanicOfTheStoreFailsTheEventsOfThatRowAlone",
	}, ""},
	"C8": {"the function times out in mid-batch", []string{
		"shared/ingest TestC8_TheAnswerComesBeforeTheDeadlineAndNamesExactlyWhatIsNotCounted",
		"shared/local/mapping TestC8_AFunctionThatTimesOutGetsItsWholeBatchAgain",
	}, ""},
	"D2": {"SNS and EventBridge inside SQS", []string{
		"shared/ingest TestD2_ABusinessEventWithTheMembersOfAWrappingIsCountedAsItStands",
		"shared/ingest TestD2_TheFourWrappingsOfOneEventCountOnceByItsOwnTime",
		"shared/envelope TestD2_AnEventThatOnlyResemblesAWrappingIsNotOpened",
	}, ""},
	"D3": {"log subscriptions: gzip, many events a record, control messages", []string{
		"shared/envelope TestD3_GzipIsOpenedByContentAndReadWholeOrNotAtAll",
		"shared/envelope TestD3_ABombIsABadRecord",
		"shared/ingest TestD3_LogEventsOfASubscriptionAreCountedAndControlMessagesAreNot",
	}, ""},
	"D4": {"a service's test message", []string{
		"shared/ingest TestD4_AServicesTestMessageIsAcknowledgedAndLeavesItsNeighboursAlone",
	}, ""},
	"D5": {"numbers that change or wrap", []string{
		"shared/tally/rules TestD5_Deltas",
		"shared/tally/rules TestD5_NumbersAreExactOrRefused",
		"shared/ingest TestD5_ABatchWhoseSumIsBeyondInt64CountsExactly",
	}, ""},
	"D6": {"case of names, repeated and absent members, two documents", []string{
		"shared/tally/rules TestD6_NamesMatchExactly",
		"shared/tally/rules TestD6_AbsentNullAndEmpty",
		"shared/ingest TestD6_EveryDocumentOfARecordCountsUnderItsOwnIdentity",
		"shared/ingest TestD6_ARecordWithOneBadDocumentIsBadAsAWhole",
	}, ""},
	"D7": {"seconds, milliseconds, fractions", []string{
		"shared/envelope TestD7_AnyArrivalTimeIsReadToTheMillisecondOrNotAtAll",
		"shared/tally/rules TestD7_EventTimeDecidesTheBucketInUTC",
		"shared/ingest TestD7_ARedeliveryCountsInTheBucketOfTheFirst",
	}, ""},
	"E2": {"iterators that expire, throttling, trimmed records", []string{
		"shared/local/mapping TestE2_TroubleWithReadsLosesAndRepeatsNothing",
		"shared/local/mapping TestE2_AnIteratorThatExpiresWhileAFunctionIsDownIsReplaced",
		"shared/replay TestE2_AnExpiredIteratorIsReplacedAfterTheLastRecordAndThrottlingIsWaitedFor",
		"shared/replay TestE2_TrimmedRecordsAreToldAsLostHoweverKinesisAnswers",
		"shared/replay TestE2_ANoticeIsReplayedAndALostOneStaysWithItsCounts",
	}, ""},
	"E4": {"a function that sends to its own source", []string{
		"shared/replay TestE4_TwentyReplaysOfABadRecordEndAtRestWithItsPayloadAndHistory",
		"shared/replay TestE4_NothingIsSentToAQueueThatFeedsTheReplay",
	}, "functions/replay: the template has no loop"},
	"E5": {"200 with failed entries", []string{
		"shared/local/mapping TestE5_OnlyWhatFailedToBeDeletedIsTriedAgain",
		"shared/local/queue TestE5_DeleteMessageBatchAnswers200WithFailedEntries",
	}, "replay: a message is deleted only once its work is confirmed"},
	"F1": {"SHUTDOWN is short and not promised", nil, "extension"},
	"F3": {"a deadline on the long poll", nil, "extension"},
	"F4": {"frozen in the middle of a request", nil, "extension"},
	"F5": {"a buffer without bounds, a slow sink", nil, "extension"},
	"G1": {"a torn last record stops the start", []string{
		"shared/wal TestG1_CutAtEveryByteKeepsTheWholeFramesBeforeIt",
		"shared/wal TestG1_ZeroesBehindTheEndAreNoDamage",
	}, ""},
	"G3": {"damage in the middle is taken for a torn tail", []string{
		"shared/wal TestG3_EveryFlippedBitIsToldAndHidesOneFrameAtMost",
		"shared/wal TestG3_ZeroedSectorsLoseOnlyTheFramesTheyTouch",
	}, ""},
	"G4": {"the disk is full, or a sync fails", []string{
		"shared/wal TestG4_DiskFullAtEveryByteOfAnAppend",
		"shared/wal TestG4_FailedSyncIsToldAndSealsTheSegment",
	}, ""},
	"G5": {"applied, and the end comes before the checkpoint", nil, "spool: a cursor moves with the counts"},
	"H1": {"timings of a queue and limits of its batches", []string{
		"shared/deploy TestTemplate_KeepsItsRulesUnderEverySetting/H1 ",
		"shared/local/mapping TestH1_AFunctionMayNotOutliveTheVisibilityTimeout",
	}, ""},
	"H2": {"throttled straight into the dead-letter queue", []string{
		"shared/deploy TestTemplate_KeepsItsRulesUnderEverySetting/H2 ",
		"shared/envelope TestH2_AMessageReceivedBeforeIsDecodedAsAnyOther",
	}, ""},
	"H3": {"partial answers are not switched on", []string{
		"shared/deploy TestTemplate_KeepsItsRulesUnderEverySetting/H3 ",
		"functions/sqs TestH3_APoisonMessageComesBack",
	}, ""},
	"H4": {"a stream's retries without end or exit", []string{
		"shared/deploy TestTemplate_KeepsItsRulesUnderEverySetting/H4 ",
		"shared/local/mapping TestH4_APoisonRecordEndsInANotice",
	}, "replay: after the notice, what had not failed is counted once"},
}

func TestCases_EachHasATestThatCarriesItsNumberOrAPackageToCome(t *testing.T) {
	if len(cases) != 36 {
		t.Errorf("%d cases, want 36", len(cases))
	}
	sources := testSources(t)
	var open []string
	for _, number := range slices.Sorted(maps.Keys(cases)) {
		c := cases[number]
		if len(c.tests) == 0 && c.pending == "" {
			t.Errorf("%s (%s) has neither a test nor a package to come", number, c.what)
		}
		for _, name := range c.tests {
			folder, test, _ := strings.Cut(name, " ")
			test, sub, hasSub := strings.Cut(test, "/")
			if !regexp.MustCompile(`(^Test|_)`+number+`_`).MatchString(test) && !strings.HasPrefix(sub, number+" ") {
				t.Errorf("%s: %s does not carry the number", number, name)
			}
			if !strings.Contains(sources[folder], "\nfunc "+test+"(") || hasSub && !strings.Contains(sources[folder], `"`+sub) {
				t.Errorf("%s: there is no test %s", number, name)
			}
		}
		if c.pending != "" {
			open = append(open, number+" ("+c.pending+")")
		}
	}
	t.Logf("pending: %s", strings.Join(open, ", "))
}

// testSources returns the text of all test files of each folder.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, top := range []string{"shared", "functions"} {
		err := fs.WalkDir(os.DirFS(".."), top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path.Join("..", name))
			sources[path.Dir(name)] += "\n" + string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sources
}
