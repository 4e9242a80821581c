package account

import (
	"errors"
	"fmt"

	"lieudit/schemas/event"
)

var (
	// ErrUnknown: there is no such account.
	ErrUnknown = errors.New("unknown account")
	// ErrUnknownKey: the account has no such key.
	ErrUnknownKey = errors.New("unknown key")
)

// Refusal is a rule that an account's state breaks. Its code is what the caller is told.
type Refusal struct{ code string }

func (r *Refusal) Error() string { return r.code }

// Code names the rule.
func (r *Refusal) Code() string { return r.code }

// The rules of accounts and agencies.
var (
	ErrAlreadyOpen     = &Refusal{"compte_deja_ouvert"}
	ErrClosed          = &Refusal{"compte_ferme"}
	ErrNoAgency        = &Refusal{"agence_inconnue"}          // the account named as agency is none, or is closed
	ErrNested          = &Refusal{"agence_imbriquee"}         // a sub-client cannot be an agency, nor an agency a sub-client
	ErrSubClient       = &Refusal{"deja_sous_client"}         // it belongs to an agency already
	ErrNotSubClient    = &Refusal{"pas_sous_client"}          // it belongs to no agency
	ErrAgencyPlan      = &Refusal{"plan_de_l_agence"}         // a sub-client's plan is its agency's
	ErrSecretNoOrigins = &Refusal{"origines_sur_cle_secrete"} // only publishable keys have origins
	ErrKeyRevoked      = &Refusal{"cle_revoquee"}
)

// KeyCapError: the plan's publishable keys are all in use. A Cap of 0 means the plan includes none.
type KeyCapError struct{ Cap, Active int }

func (e *KeyCapError) Error() string {
	return fmt.Sprintf("%d of %d publishable keys in use", e.Active, e.Cap)
}

// QuotaError: the volume asked for is more than the plan can have.
type QuotaError struct{ Quota, Max int64 }

func (e *QuotaError) Error() string { return fmt.Sprintf("quota %d is above %d", e.Quota, e.Max) }

// Code names the rule.
func (e *KeyCapError) Code() string { return "capacite_cles_publiables_depassee" }

// Code names the rule.
func (e *QuotaError) Code() string { return "quota_trop_grand" }

// refuse is the decision to do nothing but record who tried what.
func refuse(action string, err error) ([]event.Event, error) {
	refused := event.AccountActionRefused{Action: action, Code: "refuse", Detail: err.Error()}
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		refused.Code = coded.Code()
	}
	if refused.Detail == refused.Code {
		refused.Detail = ""
	}
	return []event.Event{refused}, err
}
