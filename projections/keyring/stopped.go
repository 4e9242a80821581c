package keyring

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lieudit/eventstore"
)

// An event that cannot be used may be the one that takes a key away. It stops its stream, and no other: the keys of a
// stopped account, and of the sub-clients of a stopped agency, are found and give nothing; a stopped token is not found.
// A correction that names the event lets the stream go on. Since the event was never folded, nothing is to be taken back.

// unusableEvents are the events that cannot be used and that no correction names, by stream. It is replaced, never changed.
type unusableEvents map[string][]eventstore.Revision

// isStopped says whether a stream holds an event that cannot be used.
func (s *state) isStopped(category, id string) bool {
	all := s.stopped.Load()
	if all == nil || len(*all) == 0 {
		return false
	}
	return len((*all)[category+"-"+id]) > 0
}

// stopStream notes an event that cannot be used.
func (s *state) stopStream(r eventstore.RecordedEvent) {
	s.setStopped(r.Stream, append(slices.Clone(s.stoppedStreams()[r.Stream]), r.Revision))
}

// resumeStream notes that a correction names an event. It is false for an event that was folded.
func (s *state) resumeStream(stream string, at eventstore.Revision) bool {
	events := s.stoppedStreams()[stream]
	i := slices.Index(events, at)
	if i < 0 {
		return false
	}
	s.setStopped(stream, slices.Delete(slices.Clone(events), i, i+1))
	return true
}

func (s *state) stoppedStreams() unusableEvents {
	if all := s.stopped.Load(); all != nil {
		return *all
	}
	return nil
}

func (s *state) setStopped(stream string, events []eventstore.Revision) {
	changed := maps.Clone(s.stoppedStreams())
	if changed == nil {
		changed = unusableEvents{}
	}
	if changed[stream] = events; len(events) == 0 {
		delete(changed, stream)
	}
	s.stopped.Store(&changed)
}

// marshal are the events as a snapshot keeps them.
func (s unusableEvents) marshal() (all []string) {
	for stream, events := range s {
		for _, at := range events {
			all = append(all, stream+"@"+strconv.FormatInt(int64(at), 10))
		}
	}
	slices.Sort(all)
	return all
}

// unmarshalUnusableEvents is what texts told of.
func unmarshalUnusableEvents(texts []string) (unusableEvents, error) {
	all := unusableEvents{}
	for _, text := range texts {
		stream, revision, _ := strings.Cut(text, "@")
		at, err := strconv.ParseInt(revision, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no event: %w", text, err)
		}
		all[stream] = append(all[stream], eventstore.Revision(at))
	}
	return all, nil
}

// errVoidsFolded: a correction names an event that the ring has folded. It folds the log again without it.
var errVoidsFolded = errors.New("a correction names an event that was folded")

// voidedEvent is an event that a correction names.
type voidedEvent struct {
	stream   string
	revision eventstore.Revision
}

// foldNext folds the next event of the log, or passes over it. Who calls it holds mu.
func (r *Ring) foldNext(e eventstore.RecordedEvent) error {
	s := r.state.Load()
	at, corrects := eventstore.VoidedRevision(e)
	switch {
	case r.voided[voidedEvent{e.Stream, e.Revision}]:
		return nil
	case !corrects:
		err := s.foldEvent(e)
		if _, unusable := errors.AsType[*eventstore.UnusableError](err); unusable {
			s.stopStream(e)
			r.log.Error("an event cannot be used: its account is stopped", "stream", e.Stream, "position", e.Position, "reason", err)
			return nil
		}
		return err
	case s.resumeStream(e.Stream, at):
		r.log.Info("a correction names the event that stopped an account", "stream", e.Stream, "position", e.Position)
		return nil
	case r.voided[voidedEvent{e.Stream, at}]:
		return nil
	}
	if r.voided == nil {
		r.voided = map[voidedEvent]bool{}
	}
	r.voided[voidedEvent{e.Stream, at}] = true
	r.hasDiverged, r.isSynced, r.divergedAt = true, false, r.clock() // Run begins again from zero
	r.lastPollStart.Store(neverPolled)
	return fmt.Errorf("%s@%d: %w", e.Stream, at, errVoidsFolded)
}
