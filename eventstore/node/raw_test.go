package node_test

import (
	"context"
	"errors"
	"io"
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

// proposedMessage is a good proposed proposedMessage, then spoilt by each change.
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
	noType := proposedMessage(func(m *api.AppendReq_ProposedMessage) { delete(m.Metadata, "type") })
	huge := proposedMessage(func(m *api.AppendReq_ProposedMessage) { m.Data = make([]byte, 2<<20) })
	for name, x := range map[string]struct {
		reqs []*api.AppendReq
		want map[string]string
	}{
		"deleted": {[]*api.AppendReq{appendHeader("té\n-1"), proposedMessage()}, map[string]string{"exception": "stream-deleted", "stream-name": "t??-1"}},
		"no type": {[]*api.AppendReq{appendHeader("x-1"), noType}, map[string]string{"exception": "missing-required-metadata-property", "required-metadata-properties": "type,content-type"}},
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
	if err != nil || resp.GetWrongExpectedVersion().GetCurrentRevision() != 1 || resp.GetWrongExpectedVersion().GetCurrentRevision_20_6_0() != 1 {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestANodeSaysWhatItIsAndLeads(t *testing.T) {
	t.Parallel()
	s := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(s.stop)
	conn := s.conn(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "requires-leader", "true", "authorization", "Basic Og==")
	if _, err := sendAppend(ctx, conn, nil, appendHeader("x-1"), proposedMessage()); err != nil {
		t.Errorf("an append that requires the leader: %v", err)
	}
	methods, err := serverfeatures.NewServerFeaturesClient(conn).GetSupportedMethods(ctx, emptyMessage)
	if err != nil || methods.GetEventStoreServerVersion() != "24.6.0" || len(methods.GetMethods()) != 7 {
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
