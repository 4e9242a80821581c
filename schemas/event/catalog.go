// Package event is the catalog of everything that can happen. Each event is one struct, with its wire name as a literal,
// and one line in the catalog. Its codec, JSON Schema, message name and audit sentence come from these two. A published
// shape never changes: another shape gets another wire name, ending in ".v2".
// A command returns an Event. eventstore.Codec writes it as JSON under its wire name, with MapPersonal sealing its personal
// texts. Readers of the log decode it with Decode, and auditors read its Sentence.
package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Event is something that has happened. EventType is its wire name, which never changes: category.noun-past.vN.
type Event interface{ EventType() string }

// validator is an event with a rule that its field types do not express. Decode refuses an event that breaks the rule, so that
// folds need not check it.
type validator interface{ validateFields() error }

// Personal is text about a person. On the log it is encrypted with the data key of its stream's subject, or of the account
// that the event names (AccountBound). It reads as "" once that key is destroyed.
type Personal string

// clearMark begins a personal text that is on the log in clear, as Decode returns it. It is never written to the log.
const clearMark = "clear.v1:"

// Clear marks a text that is on the log in clear. An empty text stays empty.
func Clear(text string) Personal {
	if text == "" {
		return ""
	}
	return Personal(clearMark + text)
}

// ClearText returns a text that Clear has marked. ok is false for any other text.
func (p Personal) ClearText() (text string, ok bool) { return strings.CutPrefix(string(p), clearMark) }

// AccountBound is an event whose personal texts, and whose reason, are sealed for an account that its stream does not name.
type AccountBound interface {
	Event
	// SealedFor is that account; "" if the event is about no account, so that it cannot be sealed.
	SealedFor() (account string)
}

// PersonalEvent is an event with personal text. A test of the catalog fails for a type that has a Personal field and does not
// implement it.
type PersonalEvent interface {
	Event
	// MapPersonal returns a copy of the event with f applied to every personal text that is not empty. If f fails, it returns
	// the first error and no event.
	MapPersonal(f func(Personal) (Personal, error)) (Event, error)
}

// MapPersonal calls the MapPersonal of a PersonalEvent. It returns any other event unchanged.
func MapPersonal(e Event, f func(Personal) (Personal, error)) (Event, error) {
	if p, ok := e.(PersonalEvent); ok {
		return p.MapPersonal(f)
	}
	return e, nil
}

// mapText applies f to a text that is not empty.
func (p Personal) mapText(f func(Personal) (Personal, error)) (Personal, error) {
	if p == "" {
		return "", nil
	}
	return f(p)
}

// Subject names what an event is about, for the audit trail. The audit trail fills an empty field from the stream's name,
// which holds the id of the account or the token.
type Subject struct {
	IsKey   bool   // it is about a key of the account, or about the account's keys if ID is empty
	ID      string // of the key or token, or the code of the referential
	Account string // in whose audit trail the event is shown; only for streams that belong to no account
}

// Subjected is an event about something that its stream does not name.
type Subjected interface {
	Event
	AuditSubject() Subject
}

// ErrUnknownType: the catalog has no event of that wire name.
var ErrUnknownType = errors.New("unknown event type")

// Type is one line of the catalog.
type Type struct {
	Name        string       // the wire name
	Sentence    string       // what an auditor reads; {field} is replaced by the value of that JSON field
	French      string       // the same sentence in French, with the same fields
	GoType      reflect.Type // the struct
	HasPersonal bool         // it is a PersonalEvent
	effect      effect
	latest      string // the wire name of the version that Decode returns: Name, unless there is a later one
	minFormat   int    // 0: FirstFormat, as of all types of the first releases
	decode      func([]byte) (Event, error)
}

// effect tells which event types exhaustive readers may skip. An exhaustive reader must handle every type of its categories
// that has the zero effect. recordOnly includes keepsAccess.
type effect uint8

const (
	keepsAccess effect = iota + 1 // it does not change what any key or token gives access to
	recordOnly                    // it changes no account, key, token, referential or site: it is only a record
)

// Latest is the wire name of the version in which Decode returns events of the type. Readers handle that one.
func (t Type) Latest() string { return t.latest }

// KeepsAccess reports whether the event changes the access of no key or token, so that the key ring skips it.
func (t Type) KeepsAccess() bool { return t.effect != 0 }

// IsRecordOnly reports whether the event only records something, so that folds and exhaustive read models need no handler for
// it. Others may have one.
func (t Type) IsRecordOnly() bool { return t.effect == recordOnly }

// withEffect returns the catalog line with an effect.
func (t Type) withEffect(e effect) Type {
	t.effect = e
	return t
}

// Category is the first word of the wire name. All streams that hold events of the type are named {category}-{id}.
func (t Type) Category() string {
	category, _, _ := strings.Cut(t.Name, ".")
	return category
}

// define makes the catalog line of E, a struct whose EventType is the same for every value, with its sentence in both languages.
func define[E Event](sentence, french string) Type {
	var zero E
	_, hasPersonal := any(zero).(PersonalEvent)
	return Type{
		Name: zero.EventType(), latest: Latest(zero).EventType(), Sentence: sentence, French: french, GoType: reflect.TypeFor[E](), HasPersonal: hasPersonal,
		decode: func(data []byte) (Event, error) {
			var e E
			if err := json.Unmarshal(data, &e); err != nil {
				return e, err
			}
			if v, ok := any(e).(validator); ok {
				return Latest(e), v.validateFields()
			}
			return Latest(e), nil
		},
	}
}

// All is the catalog, in the order it is written. The slice is shared and must not be changed.
func All() []Type { return catalog }

// Lookup finds the catalog line of a wire name.
func Lookup(name string) (Type, bool) {
	t, ok := byName[name]
	return t, ok
}

// Decode reads an event from its JSON and converts one of an earlier version to the latest. It ignores members that the struct
// does not have, so that an older binary can read what a newer one wrote. It fails with ErrUnknownType for a wire name that is
// not in the catalog. If it fails the event is nil.
func Decode(name string, data []byte) (Event, error) {
	t, ok := byName[name]
	if !ok {
		return nil, fmt.Errorf("%w %q", ErrUnknownType, name)
	}
	e, err := t.decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return e, nil
}

// byName is the catalog by wire name. Like the catalog it is never changed.
var byName = func() map[string]Type {
	m := make(map[string]Type, len(catalog))
	for _, t := range catalog {
		m[t.Name] = t
	}
	return m
}()

// catalog holds every event type once. To add an event, add its struct, its line here, and a handler in the read model that
// shows it. An event that only records something is recordOnly and needs no handler.
var catalog = []Type{
	define[AccountOpened]("opened the account on plan {plan}",
		"a ouvert le compte avec l’offre {plan}"),
	define[PlanChanged]("changed the plan from {from} to {to} with {quota} requests a month, effective {effective}",
		"a changé l’offre de {from} à {to}, avec {quota} requêtes par mois, à partir du {effective}"),
	define[AgencyActivated]("activated agency mode",
		"a activé le mode agence").withEffect(keepsAccess),
	define[AgencyJoined]("joined agency {agency}, effective {effective}",
		"a rattaché le compte à l’agence {agency}, à partir du {effective}"),
	define[AgencyLeft]("left agency {agency}, effective {effective}",
		"a détaché le compte de l’agence {agency}, à partir du {effective}"),
	define[AccountClosed]("closed the account",
		"a fermé le compte"),
	define[AccountErased]("erased the account's name and sites, its labels, names of referentials and reasons; external ids, origins and what the log already held in clear stay on the log",
		"a effacé le nom et les sites du compte, ses libellés, les noms de ses référentiels et les motifs ; les identifiants externes, les origines et ce que le journal contenait déjà en clair y restent").withEffect(keepsAccess),
	define[SecretKeyIssued]("issued secret key {key} ({hint})",
		"a créé la clé secrète {key} ({hint})").sinceFormat(SealedTextFormat),
	define[PublishableKeyIssued]("issued publishable key {key} ({hint}) for {origins}",
		"a créé la clé publiable {key} ({hint}) pour {origins}").sinceFormat(SealedTextFormat),
	define[KeyRotationStarted]("had key {key} take the place of key {replaces}",
		"a fait remplacer la clé {replaces} par la clé {key}").withEffect(keepsAccess).sinceFormat(SessionsFormat),
	define[KeyRevoked]("revoked key {key} ({hint})",
		"a révoqué la clé {key} ({hint})"),
	define[KeyOriginsChanged]("changed the origins of key {key} from {before} to {origins}",
		"a changé les origines de la clé {key} : {before} est devenu {origins}"),
	define[AccountActionRefused]("was refused: {action} ({code})",
		"a essayé : {action}, ce qui a été refusé ({code})").withEffect(recordOnly),

	define[AccountEventVoided]("voided event {revision} of the account's stream ({type}), which cannot be used: {why}",
		"a annulé l’événement {revision} du compte ({type}), inutilisable : {why}").withEffect(recordOnly),
	define[TokenIssued]("issued {role} token {token} ({hint})",
		"a créé le jeton {token} ({hint}) de rôle {role}").sinceFormat(SealedTextFormat),
	define[TokenRevoked]("revoked {role} token {token} ({hint})",
		"a révoqué le jeton {token} ({hint}) de rôle {role}"),
	define[SessionLinkIssued]("made link {link} for one session with {role} token {token}, valid until {expires}",
		"a créé le lien {link} pour une session du jeton {token} de rôle {role}, valable jusqu’au {expires}").sinceFormat(SessionsFormat),
	define[SessionOpened]("opened session {session} with {role} token {token}, until {expires}",
		"a ouvert la session {session} avec le jeton {token} de rôle {role}, jusqu’au {expires}").sinceFormat(SessionsFormat),
	define[SessionClosed]("ended session {session} of {role} token {token}",
		"a fermé la session {session} du jeton {token} de rôle {role}").sinceFormat(SessionsFormat),
	define[SessionLinkEnded]("ended link {link} of {role} token {token}, which was not used",
		"a annulé le lien {link} du jeton {token} de rôle {role}, qui n’avait pas servi").sinceFormat(SessionsFormat),

	define[TokenEventVoided]("voided event {revision} of the token's stream ({type}), which cannot be used: {why}",
		"a annulé l’événement {revision} du jeton ({type}), inutilisable : {why}").withEffect(recordOnly),
	define[ReferentialOpened]("opened referential {code}",
		"a ouvert le référentiel {code}").sinceFormat(SealedTextFormat),
	define[ReferentialRenamed]("renamed referential {code}",
		"a renommé le référentiel {code}").sinceFormat(SealedTextFormat),
	define[ReferentialArchived]("archived referential {code}",
		"a archivé le référentiel {code}"),
	define[SitesChanged]("wrote sites of {referential} ({action}): {created} created, {updated} updated, {reactivated} reactivated, {deactivated} deactivated",
		"a écrit des sites de {referential} ({action}) : {created} créés, {updated} modifiés, {reactivated} réactivés, {deactivated} désactivés"),
	define[SyncCommitted]("wrote sites of {referential} ({action}, as staged in {sync}): {created} created, {updated} updated, {reactivated} reactivated, {deactivated} deactivated",
		"a écrit des sites de {referential} ({action}) : {created} créés, {updated} modifiés, {reactivated} réactivés, {deactivated} désactivés"),
	define[UnchangedWriteRecorded]("was asked to write sites of {referential} ({action}) and had nothing to change",
		"a demandé d’écrire des sites de {referential} ({action}), sans que rien ait eu à changer").withEffect(recordOnly),
	define[LocationsEventVoided]("voided event {revision} of the places' stream ({type}), which cannot be used: {why}",
		"a annulé l’événement {revision} des sites ({type}), inutilisable : {why}").withEffect(recordOnly),
	define[SyncStaged]("staged rows of a sync",
		"a préparé des lignes d’une synchronisation"),

	define[UsageOpened]("opened the period from {first} of contract {contract} with {cap} requests",
		"a ouvert la période du {first} du contrat {contract} avec {cap} requêtes"),
	define[UsageCapSet]("set the requests of {account} in the period to {cap}",
		"a fixé les requêtes de {account} pour la période à {cap}"),
	define[UsageKeyRevoked]("ended the counting of key {key}",
		"a arrêté le décompte de la clé {key}"),
	define[UsageAccountClosed]("ended the counting of {account}",
		"a arrêté le décompte de {account}"),
	define[UsageTicked]("asked for requests to be counted on {day} ({incarnation} no. {sequence})",
		"a demandé de compter des requêtes du {day} ({incarnation} n° {sequence})"),
	define[UsageRefunded]("took back requests counted on {day} ({incarnation} no. {sequence})",
		"a repris des requêtes comptées le {day} ({incarnation} n° {sequence})"),
	define[UsageSnapshotTaken]("repeated the state as of revision {asOf}: {used} requests",
		"a répété l’état à la révision {asOf} : {used} requêtes"),
	define[UsageClosed]("closed the period with {total} requests",
		"a clos la période avec {total} requêtes"),
	define[UsageAdjusted]("adjusted {endpoint} with key {key} on {day} by {requests}",
		"a corrigé {endpoint} avec la clé {key} le {day} de {requests}"),
	define[UsageMonthOpened]("spread the contracts of {month} over {shards} streams",
		"a réparti les contrats de {month} sur {shards} flux").sinceFormat(SharedUsageFormat),
	define[UsageCountedIn]("had the period from {first} of contract {contract} counted in {stream}",
		"a fait compter la période du {first} du contrat {contract} dans {stream}").sinceFormat(SharedUsageFormat),
	define[SharedUsageCapSet]("set the requests of {account} in the period from {first} of contract {contract} to {cap}",
		"a fixé les requêtes de {account} pour la période du {first} du contrat {contract} à {cap}").sinceFormat(SharedUsageFormat),
	define[SharedUsageKeyRevoked]("ended the counting of key {key} in the period from {first} of contract {contract}",
		"a arrêté le décompte de la clé {key} pour la période du {first} du contrat {contract}").sinceFormat(SharedUsageFormat),
	define[SharedUsageAccountClosed]("ended the counting of {account} in the period from {first} of contract {contract}",
		"a arrêté le décompte de {account} pour la période du {first} du contrat {contract}").sinceFormat(SharedUsageFormat),
	define[SharedUsageTicked]("asked for requests of several contracts to be counted on {day} ({incarnation} no. {sequence})",
		"a demandé de compter des requêtes de plusieurs contrats du {day} ({incarnation} n° {sequence})").sinceFormat(SharedUsageFormat),
	define[SharedUsageRefunded]("took back requests of contract {contract} counted on {day} ({incarnation} no. {sequence})",
		"a repris des requêtes du contrat {contract} comptées le {day} ({incarnation} n° {sequence})").sinceFormat(SharedUsageFormat),
	define[SharedUsageSnapshotTaken]("repeated part {part} of {parts} of the state as of revision {asOf}",
		"a répété la partie {part} sur {parts} de l’état à la révision {asOf}").sinceFormat(SharedUsageFormat),
	define[SharedUsageEnded]("ended the counting in the period from {first} of contract {contract}",
		"a arrêté le décompte de la période du {first} du contrat {contract}").sinceFormat(SharedUsageFormat),
	define[UsageLinesStated]("stated lines of the period before closing it",
		"a énoncé des lignes de la période avant de la clore").sinceFormat(SharedUsageFormat),
	define[InstanceStarted]("started as {incarnation}",
		"a démarré sous le nom {incarnation}"),
	define[InstanceEnded]("ended {incarnation} in good order",
		"a terminé {incarnation} en bon ordre"),

	// The first versions of events that have a later one, with the same sentences.
	define[secretKeyIssuedV1]("issued secret key {key} ({hint})",
		"a créé la clé secrète {key} ({hint})"),
	define[publishableKeyIssuedV1]("issued publishable key {key} ({hint}) for {origins}",
		"a créé la clé publiable {key} ({hint}) pour {origins}"),
	define[tokenIssuedV1]("issued {role} token {token} ({hint})",
		"a créé le jeton {token} ({hint}) de rôle {role}"),
	define[referentialOpenedV1]("opened referential {code}",
		"a ouvert le référentiel {code}"),
	define[referentialRenamedV1]("renamed referential {code}",
		"a renommé le référentiel {code}"),

	// Older programs do not read streams of these categories.
	define[FormatRaised]("raised the format of the log to {format}",
		"a porté le format du journal à {format}").sinceFormat(FirstFormat),
	define[LogRestored]("restored the log from a copy of {takenAt}",
		"a restauré le journal d’une copie du {takenAt}").sinceFormat(FirstFormat),
	define[UsageLogBound]("bound the usage log {log}",
		"a lié le journal d’usage {log}").sinceFormat(FirstFormat),

	define[DataReleased]("released the {kind} of {date} ({sum})",
		"a publié {kind} du {date} ({sum})").sinceFormat(ReleasesFormat),
	define[InstanceAnnounced]("announced instance {instance} at {url}",
		"a annoncé l’instance {instance} à {url}").sinceFormat(ReleasesFormat),
	define[InstanceLeft]("took instance {instance} off the list",
		"a retiré l’instance {instance} de la liste").sinceFormat(ReleasesFormat),
}
