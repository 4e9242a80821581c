package deployment

import (
	"context"
	"slices"

	"lieudit/commands"
	"lieudit/schemas/event"
)

// releasesID is the id of the stream deployment-releases. It is a stream of its own, because every instance reads deployment-log
// again and again to its beginning.
const releasesID = "releases"

// Fleet is the fold of the stream deployment-releases: what was released, and which instances are there. The zero Fleet is that
// of a log without its events.
type Fleet struct {
	Releases  []event.DataReleased      // all kinds, the oldest first
	Instances []event.InstanceAnnounced // in the order in which they were first announced; each once
}

// FleetAggregate describes how the stream is folded.
var FleetAggregate = commands.Aggregate[Fleet]{Category: Aggregate.Category, Evolve: EvolveFleet}

// EvolveFleet changes the fleet by one record. An instance that is announced at the address of another one of the same machine
// takes its place: that one ended without a word.
func EvolveFleet(f *Fleet, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.DataReleased:
		f.Releases = append(f.Releases, e)
	case event.InstanceAnnounced:
		if i := f.indexOf(e.Instance); i >= 0 {
			f.Instances[i] = e
			return
		}
		f.Instances = slices.DeleteFunc(f.Instances, func(other event.InstanceAnnounced) bool {
			return e.URL != "" && other.URL == e.URL && other.Host == e.Host
		})
		f.Instances = append(f.Instances, e)
	case event.InstanceLeft:
		f.Instances = slices.DeleteFunc(f.Instances, func(other event.InstanceAnnounced) bool { return other.Instance == e.Instance })
	}
}

// indexOf returns the place of an instance in Instances, -1 for one that is not there.
func (f *Fleet) indexOf(instance string) int {
	return slices.IndexFunc(f.Instances, func(i event.InstanceAnnounced) bool { return i.Instance == instance })
}

// Latest returns the last release of a kind whose format lies within bounds. ok is false when there is none.
func (f *Fleet) Latest(kind string, firstFormat, lastFormat int) (latest event.DataReleased, ok bool) {
	for _, r := range slices.Backward(f.Releases) {
		if r.Kind == kind && firstFormat <= r.Format && r.Format <= lastFormat {
			return r, true
		}
	}
	return latest, false
}

// Last returns the last release of a kind, whatever its format.
func (f *Fleet) Last(kind string) (last event.DataReleased, ok bool) {
	return f.Latest(kind, 0, int(^uint(0)>>1))
}

// Find returns the last release of a file of a kind.
func (f *Fleet) Find(kind, sum string) (found event.DataReleased, ok bool) {
	for _, r := range slices.Backward(f.Releases) {
		if r.Kind == kind && r.Sum == sum {
			return r, true
		}
	}
	return found, false
}

// Of returns what an instance has of a kind.
func (f *Fleet) Of(instance, kind string) (data event.AnnouncedData, ok bool) {
	if i := f.indexOf(instance); i >= 0 {
		return dataOf(f.Instances[i], kind)
	}
	return data, false
}

// dataOf returns what an announcement says of a kind.
func dataOf(a event.InstanceAnnounced, kind string) (data event.AnnouncedData, ok bool) {
	if i := slices.IndexFunc(a.Data, func(d event.AnnouncedData) bool { return d.Kind == kind }); i >= 0 {
		return a.Data[i], true
	}
	return data, false
}

// Holders returns the instances that others can fetch the file of a release from: those that serve it first. The one that released it
// serves it, also before it has announced that.
func (f *Fleet) Holders(r event.DataReleased) (holders []event.InstanceAnnounced) {
	var before []event.InstanceAnnounced
	for _, i := range f.Instances {
		switch d, _ := dataOf(i, r.Kind); {
		case i.URL == "":
		case d.Serves == r.Sum:
			holders = append(holders, i)
		case d.Before == r.Sum || i.Instance == r.Instance:
			before = append(before, i)
		}
	}
	return append(holders, before...)
}

// Fleet returns the fleet as the log has it now. The caller must not change what the slices hold.
func (d *Deployment) Fleet(ctx context.Context) (current Fleet, err error) {
	err = d.fleet.View(ctx, releasesID, func(f *Fleet) {
		current = Fleet{slices.Clone(f.Releases), slices.Clone(f.Instances)}
	})
	return current, err
}

// ReleaseData records a release. The file that is the last release of its kind already appends nothing. An adopted one is a
// release only if none was made before it, or if that was adopted too and is of an earlier date.
func (d *Deployment) ReleaseData(ctx context.Context, meta commands.Metadata, r event.DataReleased) error {
	_, err := d.fleet.Handle(ctx, releasesID, meta, func(f *Fleet) commands.Result {
		last, ok := f.Last(r.Kind)
		if ok && (last.Sum == r.Sum || r.IsAdopted && !(last.IsAdopted && last.Date < r.Date)) {
			return commands.Result{}
		}
		return commands.Append(r)
	})
	return err
}

// AnnounceInstance records what an instance serves. What the log says of it already appends nothing.
func (d *Deployment) AnnounceInstance(ctx context.Context, meta commands.Metadata, a event.InstanceAnnounced) error {
	_, err := d.fleet.Handle(ctx, releasesID, meta, func(f *Fleet) commands.Result {
		if i := f.indexOf(a.Instance); i >= 0 && isSameAnnouncement(f.Instances[i], a) {
			return commands.Result{}
		}
		return commands.Append(a)
	})
	return err
}

// isSameAnnouncement reports whether two announcements say the same.
func isSameAnnouncement(a, b event.InstanceAnnounced) bool {
	return a.Instance == b.Instance && a.Host == b.Host && a.URL == b.URL && a.Program == b.Program && slices.Equal(a.Data, b.Data)
}

// RemoveInstance takes an instance off the list; isLost says that it did not ask for it itself. One that is not there appends
// nothing.
func (d *Deployment) RemoveInstance(ctx context.Context, meta commands.Metadata, instance string, isLost bool) error {
	_, err := d.fleet.Handle(ctx, releasesID, meta, func(f *Fleet) commands.Result {
		if f.indexOf(instance) < 0 {
			return commands.Result{}
		}
		return commands.Append(event.InstanceLeft{Instance: instance, IsLost: isLost})
	})
	return err
}
