package service

import (
	"context"
	"net"
	"time"

	"lieudit/eventstore/clock"
)

// readyPoll is how often a starting instance checks whether it is ready.
const readyPoll = 100 * time.Millisecond

// notifySupervisor notifies systemd, or another supervisor with its protocol, when the instance is ready and when it stops. It sends
// datagrams to a socket, whose path is in NOTIFY_SOCKET, and returns when ctx ends. Without a socket it does nothing. A supervisor
// that does not listen is logged once and does not end the instance.
func (s *service) notifySupervisor(ctx context.Context, isReady func(context.Context) bool) error {
	if s.NotifySocket == "" {
		return nil
	}
	socket, err := net.Dial("unixgram", s.NotifySocket) // a path that begins with @ is an abstract socket, as in systemd
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
