package storetest

import (
	"context"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

func brokenMarks() []fault {
	return []fault{
		{name: "does not look at the log of a mark", breaks: []string{"a mark of another log has diverged"}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onMark: func(k eventstore.Mark) eventstore.Mark { k.Log = m.id; return k }}
		}},
		{name: "does not look at the event of a mark", breaks: []string{"a mark with another event's id has diverged"}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onMark: func(k eventstore.Mark) eventstore.Mark {
				all, _, _ := m.look()
				if next := int(k.Position / 10); next > 0 && next <= len(all) {
					k.Event = all[next-1].ID
				}
				return k
			}}
		}},
		{name: "waits at a mark beyond its end", breaks: []string{"a mark beyond the end has diverged"}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onMark: func(k eventstore.Mark) eventstore.Mark {
				all, _, _ := m.look()
				if end := m.mark(all, len(all)); k.Position > end.Position {
					return end
				}
				return k
			}}
		}},
		{name: "resumes at a mark instead of after it", breaks: []string{
			"a read resumes after any mark without gap or repetition", "the mark of every signal is one to resume after",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onMark: func(k eventstore.Mark) eventstore.Mark {
				all, _, _ := m.look()
				if next := int(k.Position / 10); next > 0 && next <= len(all) {
					return m.mark(all, next-1)
				}
				return k
			}}
		}},
		{name: "changes its identity", breaks: []string{"a log has one identity, whoever asks"}, wrap: func(m *memory) eventstore.Store {
			return &restless{memory: m}
		}},
	}
}

type restless struct{ *memory }

func (r *restless) Identity(context.Context) (uuid.UUID, error) { return uuid.New(), nil }
