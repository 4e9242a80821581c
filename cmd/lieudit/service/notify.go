package service

import (
	"context"
	"net"
	"time"

	"lieudit/eventstore/clock"
)

// readyPoll is how often an instance that starts looks whether it is ready.
const readyPoll = 100 * time.Millisecond

// notifySupervisor tells systemd, or another supervisor that speaks its protocol, when the instance is ready and when it stops:
// datagrams at a socket, whose path is in NOTIFY_SOCKET. It returns when ctx ends. Without a socket it does nothing. A supervisor
// that does not listen is logged once and is not a reason to end.
func (s *service) notifySupervisor(ctx context.Context, isReady func(context.Context) bool) error {
	if s.NotifySocket == "" {
		return nil
	}
	socket, err := net.Dial("unixgram", s.NotifySocket) // a path that begins with @ is an abstract socket, here as there
	if err != nil {
		s.Log.Warn("the supervisor cannot be told when the instance is ready", "reason", err)
		return nil
	}
	defer socket.Close()
	for !isReady(ctx) {
		if !clock.Sleep(ctx, readyPoll) {
			break
		}
	}
	if ctx.Err() == nil {
		s.sendState(socket, "READY=1")
	}
	<-ctx.Done()
	s.sendState(socket, "STOPPING=1")
	return nil
}

// sendState sends one state to the supervisor.
func (s *service) sendState(socket net.Conn, state string) {
	if _, err := socket.Write([]byte(state)); err != nil {
		s.Log.Warn("the supervisor was not told", "state", state, "reason", err)
	}
}
