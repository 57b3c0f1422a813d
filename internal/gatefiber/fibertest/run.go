package fibertest

import (
	"testing"
)

// Run holds the adapter behind d to the cases, in subtests. One of them counts what
// is allocated: Run must begin in a test that is not parallel yet, and makes it
// parallel then.
func Run(t *testing.T, d Driver) {
	t.Helper()
	if d.Serve == nil || d.RequestCtx == nil || d.Again == nil || d.Hostname == nil || d.Params == nil ||
		d.Key == nil || d.DropTrailers == nil || d.Streams == nil || d.Files == nil || d.Test == nil {
		t.Fatal("fibertest: a Driver needs all of its functions")
	}
	t.Run("Form/CopiedOnce", func(t *testing.T) { formCopiedOnce(t, d) })
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, d)
		})
	}
}

var cases = []struct {
	name string
	run  func(t *testing.T, d Driver)
}{
	{"Body/BrokenOff", bodyBrokenOff},
	{"Body/ReadByOthers", bodyReadByOthers},
	{"Body/BegunByOthers", bodyBegunByOthers},
	{"Body/ReadByNobody", bodyReadByNobody},
	{"Body/RefusedIsNoRequest", bodyRefused},
	{"Body/RefusedBeforeItComes", bodyRefusedBefore},
	{"Reply/ErrorHandlerFails", errorHandlerFails},
	{"Reply/ReplacesABody", replyReplaces},
	{"Reply/OfATimeout", replyOfATimeout},
	{"Refusal/OrAnswer", refusalOrAnswer},
	{"Refusal/OfAPart", refusalOfAPart},
	{"Form/SentAgain", formSentAgain},
	{"Form/WrittenAnew", formWrittenAnew},
	{"Form/ReadOtherwise", formReadOtherwise},
	{"Form/WithItsBytes", formWithItsBytes},
	{"Form/TooLarge", formTooLarge},
	{"Form/FoundByItsField", formFound},
	{"Form/LongFile", formLongFile},
	{"Trailer/NotTold", trailerNotTold},
	{"Trailer/HeaderMadeAnew", trailerHeaderMadeAnew},
	{"Trailer/Address", trailerAddress},
	{"Trailer/NoMissingKey", trailerNoMissingKey},
	{"DropTrailers/Header", dropTrailers},
	{"DropTrailers/StreamReadByOthers", dropTrailersRead},
	{"DropTrailers/BodyOfALength", dropTrailersLength},
	{"DropTrailers/Order", dropTrailersOrder},
	{"Key/SeesNoTrailer", keySeesNoTrailer},
	{"Key/OfTheBodySeesNoTrailer", keyOfTheBody},
	{"Key/BehindAKeyOfTheBody", keyBehindAKeyOfTheBody},
	{"Request/HostBehindAProxy", hostBehindAProxy},
	{"Request/HostOfATarget", hostOfATarget},
	{"Request/HeaderNames", headerNames},
	{"Request/Order", headerOrder},
	{"Request/Fragment", fragments},
	{"Request/MayBeKept", valuesKept},
	{"Route/Patterns", patterns},
	{"Route/UnescapePath", unescapedParams},
	{"Stream/Left", streamLeft},
	{"Stream/OfAFile", streamOfAFile},
	{"Stream/Unread", streamUnread},
	{"Stream/Taken", streamTaken},
	{"Stream/BrokenOff", streamBrokenOff},
	{"Stream/NobodyGets", streamNobodyGets},
	{"Stream/Dropped", streamDropped},
	{"Stream/LeavePanics", streamLeavePanics},
	{"Stream/InATest", streamInATest},
	{"Stream/TakenOver", takenOver},
}
