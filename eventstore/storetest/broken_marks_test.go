package storetest

import (
	"context"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

func brokenCheckpoints() []brokenStore {
	return []brokenStore{
		{name: "does not look at the log of a mark", brokenRules: []string{"a mark of another log has diverged"}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint { k.Log = m.id; return k }}
		}},
		{name: "does not look at the event of a mark", brokenRules: []string{"a mark with another event's id has diverged"}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint {
				all, _, _ := m.current()
				if next := int(k.Position / 10); next > 0 && next <= len(all) {
					k.Event = all[next-1].ID
				}
				return k
			}}
		}},
		{name: "waits at a mark beyond its end", brokenRules: []string{"a mark beyond the end has diverged"}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint {
				all, _, _ := m.current()
				if end := m.checkpointAt(all, len(all)); k.Position > end.Position {
					return end
				}
				return k
			}}
		}},
		{name: "resumes at a mark instead of after it", brokenRules: []string{
			"a read resumes after any mark without gap or repetition", "the mark of every signal is one to resume after",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint {
				all, _, _ := m.current()
				if next := int(k.Position / 10); next > 0 && next <= len(all) {
					return m.checkpointAt(all, next-1)
				}
				return k
			}}
		}},
		{name: "changes its identity", brokenRules: []string{"a log has one identity, whoever asks"}, wrap: func(m *memoryStore) eventstore.Store {
			return &changingIdentity{memoryStore: m}
		}},
	}
}

type changingIdentity struct{ *memoryStore }

func (r *changingIdentity) Identity(context.Context) (uuid.UUID, error) { return uuid.New(), nil }
