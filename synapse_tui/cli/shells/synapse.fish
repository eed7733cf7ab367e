# synapse and synapse-tui: completion for fish
function _synapse_complete
    set -l words (commandline -opc) (commandline -ct)
    _SYNAPSE_COMPLETE=fish command $words[1] $words[2..-1] 2>/dev/null </dev/null | while read -l -d \t kind word about
        switch $kind
            case plain
                printf '%s\t%s\n' $word $about
            case dir
                __fish_complete_directories (commandline -ct)
            case file
                __fish_complete_path (commandline -ct)
        end
    end
end
complete -c synapse -f -a '(_synapse_complete)'
complete -c synapse-tui -f -a '(_synapse_complete)'
