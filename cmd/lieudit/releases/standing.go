package releases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// StandingState is how far the current release of a folder has come.
type StandingState string

// The states.
const (
	StandingPending    StandingState = "pending"    // it is not on the log yet
	StandingLocal      StandingState = "local"      // only this instance serves it, for a reason
	StandingReleased   StandingState = "released"   // all instances should serve it
	StandingSuperseded StandingState = "superseded" // another release followed it
)

// Standing is what a running service knows about the current release of its folder: whether other instances should serve it, and what
// each of them serves. The service writes it into the serving folder for the commands, which do not read the log.
type Standing struct {
	Name      string             `json:"name"` // of the current release
	State     StandingState      `json:"state"`
	Reason    string             `json:"reason,omitempty"` // why it is local, or what keeps it pending
	Instances []InstanceStanding `json:"instances,omitempty"`
}

// InstanceStanding is an instance that the log lists as running.
type InstanceStanding struct {
	Instance  string `json:"instance"`
	Host      string `json:"host"`
	URL       string `json:"url"`
	Program   string `json:"program"`
	Serves    string `json:"serves"` // sum; "" for none
	Date      string `json:"date"`   // of what it serves, if that was released
	Problem   string `json:"problem,omitempty"`
	IsThis    bool   `json:"isThis"`    // the service on this data folder
	IsCurrent bool   `json:"isCurrent"` // it serves the last release, or there is none
}

// Describe names an instance for people.
func (i InstanceStanding) Describe() string {
	where := i.URL
	if where == "" {
		where = i.Host
	}
	return fmt.Sprintf("%s (%s)", where, i.Instance)
}

// Behind returns the instances that do not serve the last release.
func (s Standing) Behind() []InstanceStanding {
	return slices.DeleteFunc(slices.Clone(s.Instances), func(i InstanceStanding) bool { return i.IsCurrent })
}

// isSettled reports whether waiting changes nothing: every instance serves the release or says why it does not.
func (s Standing) isSettled() bool {
	switch s.State {
	case StandingPending:
		return false
	case StandingReleased:
		return !slices.ContainsFunc(s.Behind(), func(i InstanceStanding) bool { return i.Problem == "" })
	}
	return true
}

// standingFile holds the Standing in the serving folder.
const standingFile = "standing"

// WriteStanding writes the standing for the commands.
func (f Folder[F]) WriteStanding(s Standing) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return replaceNameFile(filepath.Join(f.dir, servingFolder, standingFile), string(text))
}

// ReadStanding returns the standing that a service wrote last, the zero Standing if no service wrote one.
func (f Folder[F]) ReadStanding() (s Standing, err error) {
	text, err := readNameFile(filepath.Join(f.dir, servingFolder, standingFile))
	if err != nil || text == "" {
		return s, err
	}
	return s, json.Unmarshal([]byte(text), &s)
}

// ErrServiceEnded means that the service ended before the other instances were known to serve a release.
var ErrServiceEnded = errors.New("the service has ended before it was known what other instances serve")

// AwaitInstances blocks until every instance serves a release or has said why it does not, and returns the standing. If ctx ends
// first, it returns ctx's error with the standing at that moment.
func (f Folder[F]) AwaitInstances(ctx context.Context, name string) (Standing, error) {
	ticker := time.NewTicker(pollInterval / 5)
	defer ticker.Stop()
	for {
		s, err := f.ReadStanding()
		if err != nil || s.Name == name && s.isSettled() {
			return s, err
		}
		if s.Name != name {
			s = Standing{Name: name, State: StandingPending}
			if current, err := f.Current(); err == nil && current != name {
				s.State = StandingSuperseded
				return s, nil
			}
		}
		if _, running, err := f.ServedName(); err != nil || !running {
			return s, errors.Join(ErrServiceEnded, err)
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-ticker.C:
		}
	}
}
