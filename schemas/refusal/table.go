package refusal

import (
	"fmt"
	"net/http"
	"slices"

	"lieudit/schemas/plan"
)

// Form is the shape of an answer's body. Package body has a struct for each.
type Form uint8

const (
	TextForm         Form = iota // {"detail": text}
	CodeForm                     // {"detail": {"code", "message"}}
	SitesForm                    // {"detail": {"code", "sites_actifs", "capacite", "plafond"}}
	ReferentialsForm             // {"detail": {"code", "referentiels_actifs", "maximum"}}
	ReductionForm                // {"detail": {"code", "actifs_avant", "actifs_apres", "message"}}
	KeysForm                     // {"detail": {"code", "plafond", "actives", "message"}}
	ParseForm                    // {"status", "message"}
	NoBody                       // nothing after the header
)

// Row is the answer to a code: its status, and how the details make up its body.
type Row struct {
	Code    Code
	Status  int // of HTTP
	Form    Form
	Text    func(Details) string // nil: the form has none
	Example Details              // what the OpenAPI documents show
}

// Row is the row of the table for a code. A code without a row is answered as Internal.
func (c Code) Row() Row {
	if i := slices.IndexFunc(table, func(r Row) bool { return r.Code == c }); i >= 0 {
		return table[i]
	}
	return Internal.Row()
}

// Table is every row, in the order of section 7 of the specification. The slice is the caller's.
func Table() []Row { return slices.Clone(table) }

var table = []Row{
	{RequestMalformed, http.StatusBadRequest, TextForm, fixedText("Request too short or invalid"), Details{}},

	{KeyRequired, http.StatusUnauthorized, TextForm, fixedText("API key required. Please provide a valid API key in the Authorization header."), Details{}},
	{KeyInvalid, http.StatusUnauthorized, TextForm, fixedText("Invalid API key"), Details{}},
	{LinkInvalid, http.StatusUnauthorized, CodeForm, fixedText("Ce lien n'est pas valable : il a déjà servi, il a expiré, ou son jeton est révoqué. Demandez-en un autre."), Details{}},

	{PlanInsufficient, http.StatusForbidden, TextForm, func(d Details) string {
		return fmt.Sprintf("Your plan (%s) does not have access to this service. Please upgrade your plan.", d.Plan)
	}, Details{Plan: plan.Growth}},
	{RoleForbidden, http.StatusForbidden, TextForm, func(d Details) string {
		return fmt.Sprintf("Forbidden: this takes the role %s", d.Reason)
	}, Details{Reason: "operator or auditor"}},
	{KeyOutOfScope, http.StatusForbidden, CodeForm, fixedText("Une clé publiable n'ouvre que GET /locations/search. Utilisez une clé secrète, depuis un serveur, pour tout autre appel."), Details{}},
	{OriginMissing, http.StatusForbidden, CodeForm, fixedText("Une clé publiable ne sert que depuis une page web : l'en-tête Origin est absent. Depuis un serveur, utilisez une clé secrète."), Details{}},
	{OriginNotAllowed, http.StatusForbidden, CodeForm, fixedText("L'origine de cette page n'est pas déclarée sur la clé publiable. Ajoutez-la à ses domaines dans l'espace client."), Details{}},

	{ForeignPage, http.StatusForbidden, CodeForm, fixedText("Cette demande vient d'une page d'un autre site."), Details{}},
	{LoginUnencrypted, http.StatusForbidden, CodeForm, fixedText("À cette adresse la connexion n'est pas chiffrée, et aucun navigateur ne garderait la session : passez par https, ou par http://localhost sur la machine du service (serve --area-url)."), Details{}},

	{NotFound, http.StatusNotFound, TextForm, fixedText("Not found"), Details{}},
	{MethodNotAllowed, http.StatusMethodNotAllowed, TextForm, fixedText("Method not allowed"), Details{}},
	{Misdirected, http.StatusMisdirectedRequest, TextForm, fixedText("Misdirected Request"), Details{}},

	{ReferentialCodeTaken, http.StatusConflict, TextForm, fixedText(string(ReferentialCodeTaken)), Details{}},
	{ReferentialArchived, http.StatusConflict, TextForm, fixedText(string(ReferentialArchived)), Details{}},
	{SitesOverCapacity, http.StatusConflict, SitesForm, nil, Details{Active: 2199, Capacity: 2000, Ceiling: 2200}},
	{ReferentialsOverCapacity, http.StatusConflict, ReferentialsForm, nil, Details{Active: 25, Ceiling: 25}},
	{SuspiciousReduction, http.StatusConflict, ReductionForm, func(d Details) string {
		return fmt.Sprintf("Cette synchronisation désactiverait plus de la moitié des %d sites actifs. Si c'est voulu, renvoyez-la avec confirmer_reduction à true.", d.Before)
	}, Details{Before: 100, After: 40}},
	{KeysOverCapacity, http.StatusConflict, KeysForm, keysOverCapacityText, Details{Active: 5, Ceiling: 5}},

	{AccountExists, http.StatusConflict, CodeForm, fixedText("Un compte existe déjà sous cet identifiant."), Details{}},
	{AccountClosed, http.StatusConflict, CodeForm, fixedText("Ce compte est fermé."), Details{}},
	{AccountOpen, http.StatusConflict, CodeForm, fixedText("Ce compte est ouvert : fermez-le d'abord."), Details{}},
	{AgencyUnknown, http.StatusConflict, CodeForm, fixedText("Aucun compte en mode agence ne porte cet identifiant."), Details{}},
	{AgencyClosed, http.StatusConflict, CodeForm, fixedText("L'agence de ce compte est fermée : ses clés ne donnent accès à rien."), Details{}},
	{NestedAgency, http.StatusConflict, CodeForm, fixedText("Une agence ne peut pas être le sous-client d'une autre."), Details{}},
	{AlreadySubClient, http.StatusConflict, CodeForm, fixedText("Ce compte est déjà le sous-client d'une agence."), Details{}},
	{NotSubClient, http.StatusConflict, CodeForm, fixedText("Ce compte n'est le sous-client d'aucune agence."), Details{}},
	{LeavingUnconfirmed, http.StatusConflict, CodeForm, fixedText("Un opérateur confirme le départ d'un sous-client : demandez-le-lui."), Details{}},
	{SubClientLeaving, http.StatusConflict, CodeForm, fixedText("Ce sous-client quitte l'agence : ses conditions sont arrêtées."), Details{}},
	{PlanOfAgency, http.StatusConflict, CodeForm, fixedText("Le plan d'un sous-client est celui de son agence."), Details{}},
	{OriginsOnSecretKey, http.StatusConflict, CodeForm, fixedText("Seules les clés publiables déclarent des origines."), Details{}},
	{KeyRevoked, http.StatusConflict, CodeForm, fixedText("Cette clé est révoquée."), Details{}},
	{KeyReplaced, http.StatusConflict, CodeForm, func(d Details) string {
		return fmt.Sprintf("Une autre clé remplace déjà celle-ci : %s. Achevez ce remplacement, ou révoquez la nouvelle clé d'abord.", d.Typed)
	}, Details{Typed: "0198a3f2-7c1e-7b60-8a55-2f6f3f1f9a10"}},
	{TooManySessions, http.StatusConflict, CodeForm, fixedText("Trop de sessions ou de liens en attente : fermez-en d'abord."), Details{}},

	{PeriodNotClosed, http.StatusConflict, CodeForm, fixedText("Cette période n'est pas close : seule une période close se corrige."), Details{}},
	{DayOutsidePeriod, http.StatusConflict, CodeForm, fixedText("Ce jour n'est pas dans la période."), Details{}},
	{AccountNotInContract, http.StatusConflict, CodeForm, fixedText("Ce compte n'a rien consommé sur ce contrat pendant la période."), Details{}},
	{AdjustmentBelowZero, http.StatusConflict, CodeForm, fixedText("La correction laisserait moins de zéro requête."), Details{}},
	{AdjustmentZero, http.StatusConflict, CodeForm, fixedText("Une correction ajoute ou retire au moins une requête."), Details{}},

	{UpgradeUnfinished, http.StatusConflict, CodeForm, fixedText("Le format du journal ne le permet pas encore : achevez d'abord la mise à niveau (lieudit upgrade finish)."), Details{}},
	{UpgradeBlocked, http.StatusConflict, CodeForm, func(d Details) string {
		return fmt.Sprintf("Le programme de ces instances est trop ancien : %s. Mettez-les à niveau ou arrêtez-les d'abord.", d.Typed)
	}, Details{Typed: "0f8c2a54-5b0e-4c1a-9d53-2f8a1f0f4a11 v1.4.0"}},

	{BodyTooLarge, http.StatusRequestEntityTooLarge, TextForm, fixedText("Request body too large"), Details{}},

	{IdempotencyMismatch, http.StatusUnprocessableEntity, TextForm, fixedText("Idempotency-Key was used for another request"), Details{}},
	{AddressUnparsable, http.StatusUnprocessableEntity, ParseForm, fixedText("Unable to parse address"), Details{}},
	{AddressUnresolved, http.StatusUnprocessableEntity, TextForm, func(d Details) string {
		return fmt.Sprintf("Unable to resolve %s to a verified match", d.Typed)
	}, Details{Typed: "3 rue de Nulle Part"}},
	{CursorExpired, http.StatusUnprocessableEntity, CodeForm,
		fixedText("Ce curseur ne mène plus à la suite des changements : reprenez depuis le début, sans curseur."), Details{}},
	{OriginInvalid, http.StatusUnprocessableEntity, CodeForm, originInvalidText, Details{Typed: "http://exemple.fr", Reason: "elle doit commencer par https://"}},
	{TooManyOrigins, http.StatusUnprocessableEntity, CodeForm, func(d Details) string {
		return fmt.Sprintf("Une clé publiable accepte au plus %d origines, %d ont été déclarées.", d.Limit, d.Count)
	}, Details{Limit: 10, Count: 11}},

	{DiscoveryQuotaSpent, http.StatusTooManyRequests, TextForm, func(d Details) string {
		return fmt.Sprintf("Rate limit exceeded. Max allowed usage for plan %s is %d requests.", plan.Discovery, d.Limit)
	}, Details{Limit: 20000}},
	{QuotaSpent, http.StatusTooManyRequests, TextForm, func(d Details) string {
		return fmt.Sprintf("Your plan (%s) has exceeded the rate limit for this service. Please upgrade your plan.", d.Plan)
	}, Details{Plan: plan.Growth}},
	{Throttled, http.StatusTooManyRequests, NoBody, nil, Details{}},
	{TooManyLogins, http.StatusTooManyRequests, CodeForm, fixedText("Trop d'essais depuis cette adresse : attendez une minute."), Details{}},

	{Internal, http.StatusInternalServerError, TextForm, fixedText("Internal error"), Details{}},
	{AddressUnavailable, http.StatusInternalServerError, TextForm, fixedText("Address engine unavailable"), Details{}},
	{RoutingUnavailable, http.StatusInternalServerError, TextForm, fixedText("Routing engine unavailable"), Details{}},
	{ReadModelBehind, http.StatusInternalServerError, TextForm, fixedText("Read model behind"), Details{}},
	{Overloaded, http.StatusInternalServerError, TextForm, fixedText("Service overloaded"), Details{}},
	{AuthUnavailable, http.StatusServiceUnavailable, TextForm, fixedText("Authentication service unavailable"), Details{}},
}

// fixedText is a text that shows no details.
func fixedText(text string) func(Details) string { return func(Details) string { return text } }

// keysOverCapacityText shows the ceiling; a plan with a ceiling of 0 includes no publishable key.
func keysOverCapacityText(d Details) string {
	switch d.Ceiling {
	case 0:
		return "Votre plan n'inclut pas de clé publiable. Passez à un plan supérieur."
	case 1:
		return "La clé publiable de votre plan est utilisée. Révoquez-la, ou passez à un plan supérieur."
	}
	return fmt.Sprintf("Les %d clés publiables de votre plan sont utilisées. Révoquez-en une, ou passez à un plan supérieur.", d.Ceiling)
}

// originInvalidText shows the entry and the reason. Nothing typed is an origin that is missing; Limit is how many a key
// can have.
func originInvalidText(d Details) string {
	if d.Typed == "" {
		return fmt.Sprintf("Une origine manque : une clé publiable en déclare de 1 à %d, par exemple https://www.exemple.fr.", d.Limit)
	}
	return fmt.Sprintf("L'origine « %s » est refusée : %s.", d.Typed, d.Reason)
}
