package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	api "github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var emptyMessage = &shared.Empty{}

func testStreamIdentifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

func appendHeader(stream string) *api.AppendReq {
	return &api.AppendReq{Content: &api.AppendReq_Options_{Options: &api.AppendReq_Options{
		StreamIdentifier: testStreamIdentifier(stream), ExpectedStreamRevision: &api.AppendReq_Options_Any{Any: emptyMessage},
	}}}
}

// proposedMessage is a valid proposed message after each change.
func proposedMessage(changes ...func(*api.AppendReq_ProposedMessage)) *api.AppendReq {
	m := &api.AppendReq_ProposedMessage{
		Id:       &shared.UUID{Value: &shared.UUID_String_{String_: uuid.NewString()}},
		Metadata: map[string]string{"type": "e", "content-type": "application/json"},
		Data:     []byte("{}"),
	}
	for _, change := range changes {
		change(m)
	}
	return &api.AppendReq{Content: &api.AppendReq_ProposedMessage_{ProposedMessage: m}}
}

func sendAppend(ctx context.Context, conn *grpc.ClientConn, opts []grpc.CallOption, reqs ...*api.AppendReq) (*api.AppendResp, error) {
	call, err := api.NewStreamsClient(conn).Append(ctx, opts...)
	if err != nil {
		return nil, err
	}
	for _, r := range reqs {
		if err := call.Send(r); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return call.CloseAndRecv()
}

func TestAMalformedAppendIsAnInvalidArgument(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn, c := s.conn(t), s.client(t)
	option := func(o *api.AppendReq_Options) *api.AppendReq {
		return &api.AppendReq{Content: &api.AppendReq_Options_{Options: o}}
	}
	revision := &api.AppendReq_Options_Revision{Revision: 1 << 63}
	for name, reqs := range map[string][]*api.AppendReq{
		"nothing":            {},
		"an empty message":   {{}},
		"no options":         {proposedMessage()},
		"options twice":      {appendHeader("x-1"), appendHeader("x-1")},
		"no expectation":     {option(&api.AppendReq_Options{StreamIdentifier: testStreamIdentifier("x-1")})},
		"no stream":          {option(&api.AppendReq_Options{ExpectedStreamRevision: &api.AppendReq_Options_Any{Any: emptyMessage}})},
		"an empty stream":    {appendHeader(""), proposedMessage()},
		"the whole log":      {appendHeader("$all"), proposedMessage()},
		"not UTF-8":          {appendHeader("\xff\xfe"), proposedMessage()},
		"too far a revision": {option(&api.AppendReq_Options{StreamIdentifier: testStreamIdentifier("x-1"), ExpectedStreamRevision: revision})},
		"no type":            {appendHeader("x-1"), proposedMessage(func(m *api.AppendReq_ProposedMessage) { delete(m.Metadata, "type") })},
		"an empty type":      {appendHeader("x-1"), proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Metadata["type"] = "" })},
		"a tombstone":        {appendHeader("x-1"), proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Metadata["type"] = "$streamDeleted" })},
		"no content type":    {appendHeader("x-1"), proposedMessage(func(m *api.AppendReq_ProposedMessage) { delete(m.Metadata, "content-type") })},
		"no id":              {appendHeader("x-1"), proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Id = nil })},
		"an empty id":        {appendHeader("x-1"), proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Id = &shared.UUID{Value: &shared.UUID_Structured_{}} })},
		"no UUID":            {appendHeader("x-1"), proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Id = &shared.UUID{Value: &shared.UUID_String_{String_: "1"}} })},
		"a bad second event": {appendHeader("x-1"), proposedMessage(), proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Metadata = nil })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := sendAppend(t.Context(), conn, nil, reqs...); status.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v, want an invalid argument", err)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := readEvents(c.ReadStream(context.Background(), "x-1", esdb.ReadStreamOptions{}, 9)); errorCode(err) != esdb.ErrorCodeResourceNotFound {
			t.Errorf("something was written: %v", err)
		}
	})
}

func TestRefusalsSayWhyInTrailers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.conn(t)
	api0 := api.NewStreamsClient(conn)
	if _, err := api0.Tombstone(t.Context(), &api.TombstoneReq{Options: &api.TombstoneReq_Options{
		StreamIdentifier: testStreamIdentifier("té\n-1"), ExpectedStreamRevision: &api.TombstoneReq_Options_Any{Any: emptyMessage},
	}}); err != nil {
		t.Fatal(err)
	}
	huge := proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Data = make([]byte, 2<<20) })
	for name, x := range map[string]struct {
		reqs []*api.AppendReq
		want map[string]string
	}{
		"deleted": {[]*api.AppendReq{appendHeader("té\n-1"), proposedMessage()}, map[string]string{"exception": "stream-deleted", "stream-name": "t??-1"}},
		"too big": {[]*api.AppendReq{appendHeader("x-1"), huge}, map[string]string{"exception": "maximum-append-size-exceeded", "maximum-append-size": "983040"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var trailer metadata.MD
			_, err := sendAppend(t.Context(), conn, []grpc.CallOption{grpc.Trailer(&trailer)}, x.reqs...)
			for k, want := range x.want {
				if got := trailer.Get(k); len(got) != 1 || got[0] != want {
					t.Errorf("%s is %q, want %q (%v)", k, got, want, err)
				}
			}
		})
	}
	t.Run("wrong version of a deletion", func(t *testing.T) {
		t.Parallel()
		var trailer metadata.MD
		_, err := api0.Delete(t.Context(), &api.DeleteReq{Options: &api.DeleteReq_Options{
			StreamIdentifier: testStreamIdentifier("x-1"), ExpectedStreamRevision: &api.DeleteReq_Options_Revision{Revision: 4},
		}}, grpc.Trailer(&trailer))
		if got := trailer.Get("exception"); status.Code(err) != codes.FailedPrecondition || len(got) != 1 || got[0] != "wrong-expected-version" {
			t.Errorf("got %v, %v", err, trailer)
		}
	})
}

func TestAnAppendOfNoEventsChecksItsExpectation(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	end := mustAppend(t, s.client(t), "x-1", esdb.NoStream{}, newEvents(2)...)
	conn := s.conn(t)
	resp, err := sendAppend(t.Context(), conn, nil, appendHeader("x-1"))
	if err != nil || resp.GetSuccess().GetCurrentRevision() != 1 || resp.GetSuccess().GetPosition().GetCommitPosition() != end.CommitPosition {
		t.Errorf("got %v, %v", resp, err)
	}
	resp, err = sendAppend(t.Context(), conn, nil, appendHeader("y-1"))
	if err != nil || resp.GetSuccess().GetNoStream() == nil {
		t.Errorf("got %v, %v", resp, err)
	}
	behind := appendHeader("x-1")
	behind.GetOptions().ExpectedStreamRevision = &api.AppendReq_Options_Revision{Revision: 0}
	resp, err = sendAppend(t.Context(), conn, nil, behind)
	if err != nil || resp.GetWrongExpectedVersion().GetCurrentRevision() != 1 {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestANodeAnswersAsALeaderOfItsVersion(t *testing.T) {
	t.Parallel()
	s := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(s.stop)
	conn := s.conn(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "requires-leader", "true", "authorization", "Basic Og==")
	if _, err := sendAppend(ctx, conn, nil, appendHeader("x-1"), proposedMessage()); err != nil {
		t.Errorf("an append that requires the leader: %v", err)
	}
	methods, err := serverfeatures.NewServerFeaturesClient(conn).GetSupportedMethods(ctx, emptyMessage)
	if err != nil || methods.GetEventStoreServerVersion() != "24.6.0" || methods.GetMethods()[0].GetMethodName() != "batchappend" {
		t.Errorf("got %v, %v", methods, err)
	}
	info, err := gossip.NewGossipClient(conn).Read(ctx, emptyMessage)
	if err != nil || len(info.GetMembers()) != 1 {
		t.Fatalf("got %v, %v", info, err)
	}
	m := info.GetMembers()[0]
	if m.GetState() != gossip.MemberInfo_Leader || !m.GetIsAlive() || m.GetHttpEndPoint().GetAddress() != "127.0.0.1" || m.GetHttpEndPoint().GetPort() == 0 {
		t.Errorf("got %v", m)
	}
	_, err = persistent.NewPersistentSubscriptionsClient(conn).List(ctx, &persistent.ListReq{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("persistent subscriptions: got %v, want unimplemented", err)
	}
}

// newReadRequest is a valid read of the whole log after each change.
func newReadRequest(changes ...func(*api.ReadReq_Options)) *api.ReadReq {
	o := &api.ReadReq_Options{
		StreamOption: &api.ReadReq_Options_All{All: &api.ReadReq_Options_AllOptions{AllOption: &api.ReadReq_Options_AllOptions_Start{Start: emptyMessage}}},
		CountOption:  &api.ReadReq_Options_Count{Count: 100},
		FilterOption: &api.ReadReq_Options_NoFilter{NoFilter: emptyMessage},
		UuidOption:   &api.ReadReq_Options_UUIDOption{Content: &api.ReadReq_Options_UUIDOption_String_{String_: emptyMessage}},
	}
	for _, change := range changes {
		change(o)
	}
	return &api.ReadReq{Options: o}
}

func streamRead(stream string, from uint64) func(*api.ReadReq_Options) {
	return func(o *api.ReadReq_Options) {
		o.StreamOption = &api.ReadReq_Options_Stream{Stream: &api.ReadReq_Options_StreamOptions{
			StreamIdentifier: testStreamIdentifier(stream), RevisionOption: &api.ReadReq_Options_StreamOptions_Revision{Revision: from},
		}}
	}
}

func typeFilter(regex string, max, multiplier uint32) func(*api.ReadReq_Options) {
	return func(o *api.ReadReq_Options) {
		o.FilterOption = &api.ReadReq_Options_Filter{Filter: &api.ReadReq_Options_FilterOptions{
			Filter:                       &api.ReadReq_Options_FilterOptions_EventType{EventType: &api.ReadReq_Options_FilterOptions_Expression{Regex: regex}},
			Window:                       &api.ReadReq_Options_FilterOptions_Max{Max: max},
			CheckpointIntervalMultiplier: multiplier,
		}}
	}
}

func asSubscription(o *api.ReadReq_Options) {
	o.CountOption = &api.ReadReq_Options_Subscription{Subscription: &api.ReadReq_Options_SubscriptionOptions{}}
}

func backwards(o *api.ReadReq_Options) { o.ReadDirection = api.ReadReq_Options_Backwards }

func atPosition(commit, prepare uint64) func(*api.ReadReq_Options) {
	return func(o *api.ReadReq_Options) {
		o.GetAll().AllOption = &api.ReadReq_Options_AllOptions_Position{Position: &api.ReadReq_Options_Position{CommitPosition: commit, PreparePosition: prepare}}
	}
}

// collectResponses collects the responses of a read.
func collectResponses(t *testing.T, conn *grpc.ClientConn, req *api.ReadReq) ([]*api.ReadResp, error) {
	t.Helper()
	call, err := api.NewStreamsClient(conn).Read(t.Context(), req)
	if err != nil {
		return nil, err
	}
	var all []*api.ReadResp
	for {
		r, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
}

func TestAMalformedReadIsAnInvalidArgument(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.conn(t)
	mustAppend(t, s.client(t), "x-1", esdb.NoStream{}, newEvent("e"))
	for name, req := range map[string]*api.ReadReq{
		"nothing":                   {},
		"no id option":              newReadRequest(func(o *api.ReadReq_Options) { o.UuidOption = nil }),
		"no source":                 newReadRequest(func(o *api.ReadReq_Options) { o.StreamOption = nil }),
		"no position":               newReadRequest(func(o *api.ReadReq_Options) { o.GetAll().AllOption = nil }),
		"no revision":               newReadRequest(streamRead("x-1", 0), func(o *api.ReadReq_Options) { o.GetStream().RevisionOption = nil }),
		"too far a revision":        newReadRequest(streamRead("x-1", 1<<63)),
		"no count":                  newReadRequest(func(o *api.ReadReq_Options) { o.CountOption = nil }),
		"a count of none":           newReadRequest(func(o *api.ReadReq_Options) { o.CountOption = &api.ReadReq_Options_Count{} }),
		"no direction there is":     newReadRequest(func(o *api.ReadReq_Options) { o.ReadDirection = 7 }),
		"no word on a filter":       newReadRequest(func(o *api.ReadReq_Options) { o.FilterOption = nil }),
		"a filtered stream":         newReadRequest(streamRead("x-1", 0), typeFilter("e", 1, 1)),
		"a filter of nothing":       newReadRequest(func(o *api.ReadReq_Options) { o.FilterOption = &api.ReadReq_Options_Filter{} }),
		"no window":                 newReadRequest(typeFilter("e", 1, 1), func(o *api.ReadReq_Options) { o.GetFilter().Window = nil }),
		"a regex that is not RE2":   newReadRequest(typeFilter("(?<=a)b", 1, 1)),
		"a regex that is none":      newReadRequest(typeFilter("(", 1, 1)),
		"backwards for ever":        newReadRequest(asSubscription, backwards),
		"checkpoints of no window":  newReadRequest(asSubscription, typeFilter("e", 0, 1)),
		"checkpoints at no events":  newReadRequest(asSubscription, typeFilter("e", 1, 0)),
		"checkpoints out of bounds": newReadRequest(asSubscription, typeFilter("e", 1<<31, 1<<31)),
		"two positions":             newReadRequest(atPosition(9, 8)),
		"a position out of bounds":  newReadRequest(atPosition(1<<63, 1<<63)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := collectResponses(t, conn, req); status.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v, want an invalid argument", err)
			}
		})
	}
}

func TestAReadOfAStreamWithoutANameIsUnknown(t *testing.T) {
	t.Parallel()
	conn := startServer(t).conn(t)
	for _, req := range []*api.ReadReq{newReadRequest(streamRead("", 0)), newReadRequest(streamRead("", 0), asSubscription)} {
		if _, err := collectResponses(t, conn, req); status.Code(err) != codes.Unknown {
			t.Errorf("got %v, want the status unknown", err)
		}
	}
}

func TestAFilteredReadOfTheLogGoesBothWays(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.client(t)
	for i := range 6 {
		mustAppend(t, c, fmt.Sprintf("x-%d", i), esdb.NoStream{}, newEvent([]string{"red", "blue"}[i%2]))
	}
	for _, x := range []struct {
		req  *api.ReadReq
		want []string
	}{
		{newReadRequest(typeFilter("^r", 1, 0)), []string{"x-0", "x-2", "x-4"}},
		{newReadRequest(typeFilter("^b", 1, 0), backwards, func(o *api.ReadReq_Options) {
			o.GetAll().AllOption = &api.ReadReq_Options_AllOptions_End{End: emptyMessage}
			o.CountOption = &api.ReadReq_Options_Count{Count: 2}
		}), []string{"x-5", "x-3"}},
	} {
		all, err := collectResponses(t, s.conn(t), x.req)
		var got []string
		for _, r := range all {
			got = append(got, string(r.GetEvent().GetEvent().GetStreamIdentifier().GetStreamName()))
		}
		if err != nil || !slices.Equal(got, x.want) {
			t.Errorf("got %v, %v, want %v", got, err, x.want)
		}
	}
}

func TestIDsAreSentInTheRequestedForm(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.conn(t)
	e := newEvent("e")
	mustAppend(t, s.client(t), "x-1", esdb.NoStream{}, e)
	all, err := collectResponses(t, conn, newReadRequest())
	if err != nil || all[0].GetEvent().GetEvent().GetId().GetString_() != e.EventID.String() {
		t.Errorf("got %v, %v", all, err)
	}
	all, err = collectResponses(t, conn, newReadRequest(func(o *api.ReadReq_Options) {
		o.UuidOption = &api.ReadReq_Options_UUIDOption{Content: &api.ReadReq_Options_UUIDOption_Structured{Structured: emptyMessage}}
	}))
	most, least := esdb.UUIDAsInt64(e.EventID)
	id := all[0].GetEvent().GetEvent().GetId().GetStructured()
	if err != nil || id.GetMostSignificantBits() != most || id.GetLeastSignificantBits() != least {
		t.Errorf("got %v, %v", id, err)
	}
}
