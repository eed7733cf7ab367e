#compdef synapse synapse-tui
# synapse and synapse-tui: completion for zsh
_synapse_complete() {
    local kind word about
    local -a words_found meanings
    while IFS=$'\t' read -r kind word about; do
        case $kind in
            plain) words_found+=("$word"); meanings+=("${word}${about:+  -- $about}") ;;
            dir) _path_files -/ ;;
            file) _path_files ;;
        esac
    done < <(_SYNAPSE_COMPLETE=zsh "${(Q)words[1]/#\~/$HOME}" "${(@Q)words[2,$CURRENT]}" 2>/dev/null </dev/null)
    (( $#words_found )) && compadd -Q -l -d meanings -a words_found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _synapse_complete "$@"
else
    compdef _synapse_complete synapse synapse-tui 2>/dev/null
fi
