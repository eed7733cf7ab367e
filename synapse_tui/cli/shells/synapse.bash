# synapse and synapse-tui: completion for bash, of 3.2 or newer
_synapse_complete() {
    local kind word about
    COMPREPLY=()
    while IFS=$'\t' read -r kind word about; do
        case $kind in
            plain) COMPREPLY+=("$word") ;;
            dir) compopt -o filenames 2>/dev/null
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$2") ;;
            file) compopt -o filenames 2>/dev/null
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$2") ;;
        esac
    done < <(_SYNAPSE_COMPLETE=bash COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \
        COMP_WORD="$2" "${1/#\~/$HOME}" 2>/dev/null </dev/null)
}
complete -F _synapse_complete synapse synapse-tui
