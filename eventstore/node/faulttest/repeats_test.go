package faulttest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// batchStream is the server's side of a call by which the same append is sent again and again.
type batchStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s batchStream) Context() context.Context { return s.ctx }
func (batchStream) SendMsg(any) error          { return nil }

func (batchStream) RecvMsg(m any) error {
	proto.Merge(m.(*streams.BatchAppendReq), &streams.BatchAppendReq{
		CorrelationId: uuidOf(rand.Text()), IsFinal: true,
		ProposedMessages: []*streams.BatchAppendReq_ProposedMessage{{Id: uuidOf("event")}},
	})
	return nil
}

func uuidOf(text string) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_String_{String_: text}}
}

// A node's receiver outlives its call by a moment.
func TestABatchReceivedAfterItsCallIsNotInFlight(t *testing.T) {
	t.Parallel()
	r, info := newRepeats(time.Hour), &grpc.StreamServerInfo{FullMethod: streams.Streams_BatchAppend_FullMethodName}
	var ended grpc.ServerStream
	err := r.interceptCall(nil, batchStream{ctx: t.Context()}, info, func(_ any, s grpc.ServerStream) error {
		ended = s
		err := s.RecvMsg(&streams.BatchAppendReq{})
		if len(r.inFlight) != 1 {
			t.Errorf("in flight during the call: %v", r.inFlight)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.RecvMsg(&streams.BatchAppendReq{}); err != nil {
		t.Fatal(err)
	}
	if len(r.inFlight) > 0 {
		t.Errorf("in flight after the call: %v", r.inFlight)
	}
}
