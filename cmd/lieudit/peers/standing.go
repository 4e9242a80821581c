package peers

import (
	"slices"

	"lieudit/cmd/lieudit/releases"
)

// tellCommands writes for the commands how far the current release has come, whenever that changes. silence is why the log could
// not be read, nil if it was.
func (k *kind) tellCommands(silence error) {
	standing, isKnown := k.standing(silence)
	if !isKnown || isSameStanding(standing, k.told) {
		return
	}
	if err := k.Folder.WriteStanding(standing); err != nil {
		return // the next time tries again; a command that waits says that nothing was told
	}
	k.told = standing
}

func isSameStanding(a, b releases.Standing) bool {
	return a.Name == b.Name && a.State == b.State && a.Reason == b.Reason && slices.Equal(a.Instances, b.Instances)
}

// ServesLast reports whether this instance serves the last release of a kind, or there is none.
func (f *Follower) ServesLast(name string) bool {
	view, k := f.fleet.Load(), f.find(name)
	if view == nil || k == nil {
		return true
	}
	last, isReleased := view.Last(name)
	k.mu.Lock()
	defer k.mu.Unlock()
	return !isReleased || k.status.serves == last.Sum
}

// find returns the kind of a name, nil for one that is not followed.
func (f *Follower) find(name string) *kind {
	for _, k := range f.kinds {
		if k.Kind == name {
			return k
		}
	}
	return nil
}

// Instances returns what each instance on the log serves of a kind; none where this one is alone, or the log does not tell of others yet.
func (f *Follower) Instances(name string) []releases.InstanceStanding {
	view := f.fleet.Load()
	if view == nil || len(view.Instances) < 2 {
		return nil
	}
	return f.describeInstances(view, name)
}

// describeInstances describes the instances that are on the list.
func (f *Follower) describeInstances(view *fleetView, kind string) (all []releases.InstanceStanding) {
	last, isReleased := view.Last(kind)
	for _, i := range view.Instances {
		d, _ := view.Of(i.Instance, kind)
		if own := f.find(kind); own != nil && i.Instance == f.Instance {
			d, _ = own.announced() // what the log will say of this one in a moment
		}
		shown := releases.InstanceStanding{
			Instance: i.Instance, Host: i.Host, URL: i.URL, Program: i.Program, Serves: d.Serves, Problem: d.Problem,
			IsThis: i.Instance == f.Instance, IsCurrent: !isReleased || d.Serves == last.Sum,
		}
		if r, ok := view.Find(kind, d.Serves); ok {
			shown.Date = r.Date
		}
		if isReleased && d.Follows != last.Sum { // what it says is about an earlier one
			shown.Problem = ""
		}
		all = append(all, shown)
	}
	return all
}

// standing describes the current release. isKnown is false while the service does not answer from it, or nothing was read yet.
func (k *kind) standing(silence error) (s releases.Standing, isKnown bool) {
	k.mu.Lock()
	own := k.status
	k.mu.Unlock()
	if !own.isKnown || own.local.Name == "" {
		return s, false
	}
	s = releases.Standing{Name: own.local.Name, State: releases.StandingPending}
	view := k.follower.fleet.Load()
	switch {
	case silence != nil || view == nil:
		s.Reason = "the log does not answer"
		return s, true
	case !view.hasFormat:
		s.State, s.Reason = releases.StandingLocal, "the log's format is of before: once no older program runs, lieudit upgrade finish raises it, and it is released"
		return s, true
	case own.local.IsPending() && k.follower.URL == "" && !k.follower.IsAlone:
		s.State, s.Reason = releases.StandingLocal, ErrNoAddress.Error()
	case own.local.Date == releases.DemoDate:
		s.State = releases.StandingLocal
	}
	last, isReleased := view.Last(k.Kind)
	s.Instances = k.follower.describeInstances(view, k.Kind)
	if s.State != releases.StandingPending || own.local.IsPending() || !isReleased {
		return s, true
	}
	s.State = releases.StandingReleased
	if last.Sum != own.local.Sum {
		s.State = releases.StandingSuperseded
	}
	return s, true
}
