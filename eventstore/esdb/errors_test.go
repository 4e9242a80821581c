package esdb

import (
	"errors"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"lieudit/eventstore"
)

func TestEveryRefusalOfAnAppendHasItsError(t *testing.T) {
	t.Parallel()
	const kept = "a-1"
	for name, c := range map[string]struct {
		code    codes.Code
		text    string
		details proto.Message
		want    error
	}{
		"conflict":        {codes.AlreadyExists, "WrongExpectedVersion", wrongVersionAt(7), eventstore.ErrConflict},
		"too large":       {codes.InvalidArgument, "", &shared.MaximumAppendSizeExceeded{}, eventstore.ErrTooLarge},
		"ids elsewhere":   {codes.FailedPrecondition, "", &shared.InvalidTransaction{}, eventstore.ErrIDReused},
		"deleted":         {codes.NotFound, "", &shared.StreamDeleted{}, errDeleted},
		"denied":          {codes.PermissionDenied, "", &shared.AccessDenied{}, eventstore.ErrUnavailable},
		"timeout":         {codes.DeadlineExceeded, "", &shared.Timeout{}, eventstore.ErrUnknown},
		"unknown":         {codes.Unknown, "", &shared.Unknown{}, eventstore.ErrUnknown},
		"not ready":       {codes.Unavailable, "Server Is Not Ready", &emptypb.Empty{}, eventstore.ErrUnavailable},
		"busy":            {codes.Unavailable, "Server Is Too Busy", &emptypb.Empty{}, eventstore.ErrUnavailable},
		"somebody's 503":  {codes.Unavailable, "upstream connect error", &emptypb.Empty{}, eventstore.ErrUnknown},
		"unauthenticated": {codes.Unauthenticated, "", &emptypb.Empty{}, eventstore.ErrUnavailable},
	} {
		packed, err := anypb.New(c.details)
		if err != nil {
			t.Fatal(err)
		}
		got := appendError(&rpc.Status{Code: int32(c.code), Message: c.text, Details: []*anypb.Any{packed}}, kept, 3)
		if !errors.Is(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		var conflict *eventstore.ConflictError
		if want := (eventstore.ConflictError{Stream: kept, Expected: 3, Current: 7}); errors.As(got, &conflict) && *conflict != want {
			t.Errorf("%s: got %+v, want %+v", name, *conflict, want)
		}
	}
}

func wrongVersionAt(current uint64) *shared.WrongExpectedVersion {
	return &shared.WrongExpectedVersion{CurrentStreamRevisionOption: &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: current}}
}

func TestTheEndOfAPipelineIsCertainOnlyWhenItIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	notLeader := metadata.Pairs("exception", "not-leader", "leader-endpoint-host", "::1", "leader-endpoint-port", "2113")
	denied := status.Error(codes.PermissionDenied, "no")
	if err := pipelineError(denied, nil, true); !errors.Is(err, eventstore.ErrUnavailable) {
		t.Errorf("denied at once: %v", err)
	}
	var to *notLeaderError
	if err := pipelineError(denied, notLeader, true); !errors.As(err, &to) || to.leader != "[::1]:2113" {
		t.Errorf("sent elsewhere at once: %v", err)
	}
	for name, err := range map[string]error{
		"denied later":         pipelineError(denied, nil, false),
		"sent elsewhere later": pipelineError(denied, notLeader, false),
		"cut":                  pipelineError(status.Error(codes.Unavailable, "cut"), nil, true),
	} {
		if !errors.Is(err, eventstore.ErrUnknown) {
			t.Errorf("%s: got %v, want unknown", name, err)
		}
	}
}
